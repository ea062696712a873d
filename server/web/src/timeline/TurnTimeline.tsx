import { ChevronLeft, ChevronRight, Maximize2 } from "lucide-react";
import { useEffect, useId, useMemo, useState } from "react";
import type { TurnEvent, TurnRecord } from "../api/types";
import { useI18n } from "../i18n";
import type { LiveTurn } from "../play/liveTurn";
import { Dialog } from "../ui/Dialog";
import { Gantt, Patterns, StatusMark } from "./Gantt";
import { fromLive, fromRecord, type RowStatus, type Timeline } from "./model";
import { duration } from "./scale";
import { TimelineTable } from "./TimelineTable";

/** Milliseconds between two pictures of a running turn; slower for readers who asked for less motion. */
const TICK_MS = 80;
const CALM_TICK_MS = 500;
/** Event chips shown for one turn. */
const MAX_CHIPS = 60;

function useClock(running: boolean): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    if (!running) return undefined;
    const calm = window.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
    setNow(performance.now());
    const timer = setInterval(() => setNow(performance.now()), calm ? CALM_TICK_MS : TICK_MS);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}

interface Props {
  turns: TurnRecord[];
  live: LiveTurn | undefined;
}

export function TurnTimeline({ turns, live }: Props) {
  const { t } = useI18n();
  const titleId = useId();
  const running = live !== undefined && !live.finished;
  const now = useClock(running);
  const records = useMemo(() => turns.map(fromRecord), [turns]);
  const all = live ? [...records.filter((record) => record.turnId !== live.turnId), fromLive(live, now)] : records;
  /** How many turns back from the newest one. */
  const [back, setBack] = useState(0);
  const [asTable, setAsTable] = useState(false);
  const [toScale, setToScale] = useState(false);
  const [large, setLarge] = useState(false);
  // A new turn brings its own picture to the front.
  const newest = live?.requestId ?? records.at(-1)?.turnId;
  useEffect(() => setBack(0), [newest]);

  const at = Math.max(0, all.length - 1 - back);
  const shown = all[at];
  const head = (
    <TurnChooser
      shown={shown}
      canGoBack={at > 0}
      canGoOn={at < all.length - 1}
      onBack={() => setBack(all.length - at)}
      onNext={() => setBack(all.length - 2 - at)}
    />
  );
  return (
    <section className="timeline" aria-labelledby={titleId} data-testid="timeline">
      <header className="side-head">
        <h2 id={titleId}>{t("timeline.title")}</h2>
        {head}
        <button
          type="button"
          className="icon-button"
          aria-label={t("timeline.enlarge")}
          disabled={!shown}
          onClick={() => setLarge(true)}
        >
          <Maximize2 aria-hidden="true" />
        </button>
      </header>
      <div
        className="timeline-body"
        tabIndex={shown ? 0 : undefined}
        role={shown ? "group" : undefined}
        aria-labelledby={shown ? titleId : undefined}
      >
        {shown ? (
          <Body timeline={shown} asTable={asTable} toScale={toScale} onAsTable={setAsTable} onToScale={setToScale} />
        ) : (
          <p className="muted timeline-none">{t("timeline.none")}</p>
        )}
      </div>
      <Dialog open={large && shown !== undefined} onOpenChange={setLarge} title={t("timeline.title")} size="large">
        {shown && (
          <div className="timeline-large">
            {head}
            <Body timeline={shown} asTable={false} both toScale={toScale} onToScale={setToScale} />
          </div>
        )}
      </Dialog>
    </section>
  );
}

export function useTurnName(): (timeline: Timeline) => string {
  const { t } = useI18n();
  return (timeline) => {
    if (timeline.live) return t("timeline.live");
    if (!timeline.committed) return t("timeline.notCommitted");
    if (timeline.kind === "setup") return t("timeline.setup");
    if (timeline.kind === "opening") return t("timeline.opening");
    if (timeline.logicalTurn !== undefined && timeline.kind === "turn")
      return t("timeline.turn", { n: timeline.logicalTurn });
    return timeline.turnId.slice(0, 12);
  };
}

interface ChooserProps {
  shown: Timeline | undefined;
  canGoBack: boolean;
  canGoOn: boolean;
  onBack(): void;
  onNext(): void;
}

function TurnChooser({ shown, canGoBack, canGoOn, onBack, onNext }: ChooserProps) {
  const { t } = useI18n();
  const turnName = useTurnName();
  if (!shown) return <span className="spacer" />;
  return (
    <div className="turn-chooser">
      <button
        type="button"
        className="icon-button"
        aria-label={t("timeline.previous")}
        disabled={!canGoBack}
        onClick={onBack}
      >
        <ChevronLeft aria-hidden="true" />
      </button>
      <span className={`turn-name${shown.live ? " turn-live" : ""}`}>{turnName(shown)}</span>
      <button
        type="button"
        className="icon-button"
        aria-label={t("timeline.next")}
        disabled={!canGoOn}
        onClick={onNext}
      >
        <ChevronRight aria-hidden="true" />
      </button>
    </div>
  );
}

interface BodyProps {
  timeline: Timeline;
  asTable: boolean;
  both?: boolean;
  toScale: boolean;
  onAsTable?(asTable: boolean): void;
  onToScale(toScale: boolean): void;
}

function Body({ timeline, asTable, both = false, toScale, onAsTable, onToScale }: BodyProps) {
  const { t, locale } = useI18n();
  const turnName = useTurnName();
  const caption = `${t("timeline.title")}: ${turnName(timeline)}`;
  return (
    <>
      {(both || !asTable) && <Gantt timeline={timeline} toScale={toScale} />}
      {(both || asTable) && <TimelineTable timeline={timeline} caption={caption} />}
      <div className="timeline-tools">
        {onAsTable && (
          <div className="segmented" role="group" aria-label={t("timeline.as")}>
            <button type="button" aria-pressed={!asTable} onClick={() => onAsTable(false)}>
              {t("timeline.picture")}
            </button>
            <button
              type="button"
              aria-pressed={asTable}
              onClick={() => onAsTable(true)}
              data-testid="timeline-as-table"
            >
              {t("timeline.table")}
            </button>
          </div>
        )}
        {(both || !asTable) && (
          <button
            type="button"
            className="pill"
            aria-pressed={toScale}
            title={t(toScale ? "timeline.scale.true" : "timeline.scale.even")}
            onClick={() => onToScale(!toScale)}
          >
            {t("timeline.scale.toggle")}
          </button>
        )}
        <span className="timeline-total muted">
          {t("timeline.total", { duration: duration(timeline.total, locale) })}
          {!timeline.live && !timeline.committed && (
            <strong className="not-kept"> · {t("timeline.notCommitted")}</strong>
          )}
        </span>
      </div>
      <Events events={timeline.events} />
      {both && <Legend />}
    </>
  );
}

function Events({ events }: { events: TurnEvent[] }) {
  const { t } = useI18n();
  return (
    <div className="timeline-events">
      <h3>{t("timeline.events")}</h3>
      {events.length === 0 ? (
        <p className="muted">{t("timeline.noEvents")}</p>
      ) : (
        <ul>
          {events.slice(0, MAX_CHIPS).map((event, index) => {
            const from = t("timeline.eventFrom", { plugin: event.pluginId ?? "?", depth: event.depth ?? 1 });
            return (
              <li key={index} className="event-chip" data-testid="event-chip" title={from}>
                <span className="event-depth" aria-hidden="true">
                  {event.depth ?? 1}
                </span>
                {event.topic}
                <span className="visually-hidden"> {from}</span>
              </li>
            );
          })}
        </ul>
      )}
    </div>
  );
}

function Legend() {
  const { t } = useI18n();
  const id = useId();
  const statuses: RowStatus[] = ["completed", "running", "failed", "skipped"];
  return (
    <div className="legend">
      <h3 className="visually-hidden">{t("timeline.legend")}</h3>
      {statuses.map((status) => (
        <span key={status} className="legend-entry">
          <svg width="44" height="16" viewBox="0 0 44 16" aria-hidden="true" className={`gantt-${status}`}>
            <Patterns id={id} />
            <StatusMark status={status} x={7} y={8} />
            {status === "skipped" ? (
              <line className="gantt-skip" x1={18} x2={42} y1={8} y2={8} />
            ) : (
              <>
                <rect className="gantt-bar" x={18} y={2} width={24} height={12} rx={3} />
                {status !== "completed" && (
                  <rect x={18} y={2} width={24} height={12} rx={3} fill={`url(#${id}-${status})`} />
                )}
              </>
            )}
          </svg>
          {t(`status.${status}`)}
        </span>
      ))}
    </div>
  );
}
