import { Activity, BookOpenText, LayoutPanelLeft } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { ApiError, api, toApiError } from "../api/client";
import { useI18n } from "../i18n";
import { TurnTimeline } from "../timeline/TurnTimeline";
import { ErrorBanner } from "../ui/Banner";
import { asText } from "../view/expression";
import type { ViewAction } from "../view/View";
import { Composer } from "./Composer";
import { MessageBlocks, Panels } from "./Panels";
import { Story } from "./Story";
import { usePlay, type Play } from "./usePlay";

/** Longest text that is announced to a screen reader at once, in characters. */
const MAX_ANNOUNCED = 3_000;

type Part = "story" | "panels" | "turn";
const PARTS = [
  ["story", "play.story", BookOpenText],
  ["panels", "play.panels", LayoutPanelLeft],
  ["turn", "play.turn", Activity],
] as const;

export function PlayView({ sessionId }: { sessionId: string }) {
  const { t, text } = useI18n();
  const play = usePlay(sessionId);
  const [draft, setDraft] = useState("");
  /** Which part a narrow screen shows; wide ones show all. */
  const [part, setPart] = useState<Part>("story");
  const { session, live, failure, elsewhere, world } = play;
  const running = (live !== undefined && !live.finished) || elsewhere;
  const ended = session?.status === "ended";

  const worldName = text(world?.name);
  useEffect(() => {
    document.title = worldName ? `${worldName} · Covel` : "Covel";
    return () => {
      document.title = "Covel";
    };
  }, [worldName]);

  const toStory = useCallback(() => setPart("story"), []);
  const onAction = useViewActions(sessionId, play, setDraft, toStory);
  const { intent } = failure ?? {};
  const banner = failure && (
    <ErrorBanner
      error={failure.error}
      {...(intent !== undefined && failure.error.code !== "aborted" ? { lead: t("error.turn") } : {})}
      onRetry={intent && !running ? () => void play.run(intent) : undefined}
      onDismiss={() => {
        // What was written must not be lost with the turn.
        const lost =
          intent?.type === "send_message" ? intent.content : intent?.type === "execute_command" ? intent.command : "";
        setDraft((before) => before || lost);
        play.dismissFailure();
      }}
    />
  );

  if (play.loadError) {
    return (
      <main id="main" className="play-error" tabIndex={-1}>
        <ErrorBanner error={play.loadError} lead={t("error.load")} onRetry={() => void play.reload()} />
        <a className="button" href="#/">
          {t("app.home")}
        </a>
      </main>
    );
  }

  return (
    <main id="main" className="play" data-part={part} tabIndex={-1}>
      <h1 className="visually-hidden">{worldName || sessionId}</h1>
      <nav className="part-nav" aria-label={t("play.views")}>
        {PARTS.map(([name, key, Icon]) => (
          <button
            key={name}
            type="button"
            aria-current={part === name ? "true" : undefined}
            onClick={() => setPart(name)}
            data-testid={`part-${name}`}
          >
            <Icon aria-hidden="true" /> {t(key)}
          </button>
        ))}
      </nav>
      <section className="play-main" aria-label={t("play.story")}>
        <Story
          play={play}
          banner={banner}
          blocks={<MessageBlocks specs={play.specs} data={play.data} locked={running} onAction={onAction} />}
        />
        {elsewhere && (
          <p className="elsewhere" role="status">
            {t("play.elsewhere")}
          </p>
        )}
        {ended ? (
          <p className="elsewhere">{t("play.ended")}</p>
        ) : (
          <Composer
            text={draft}
            onText={setDraft}
            commands={play.commands}
            running={running}
            blocked={!play.loaded}
            stopping={play.stopping}
            canStop={play.canStop}
            onSend={(next) => void play.run(next)}
            onStop={() => void play.stop()}
          />
        )}
        <Announcer play={play} running={running} />
      </section>
      <div className="play-side">
        <Panels specs={play.specs} data={play.data} locked={running} onAction={onAction} />
        <TurnTimeline turns={play.turns} live={live} />
      </div>
      {play.connected === false && (
        <p className="connection" role="status">
          {t("play.connection.lost")}
        </p>
      )}
    </main>
  );
}

/** Says once that a turn began and once how it ended, with the finished text. */
function Announcer({ play, running }: { play: Play; running: boolean }) {
  const { t } = useI18n();
  const { finished, live } = play;
  let text = "";
  if (running) text = t("play.announce.started");
  else if (finished) {
    text = finished.committed
      ? `${t("play.announce.finished")} ${finished.text.slice(0, MAX_ANNOUNCED)}`
      : t("play.announce.failed");
  }
  return (
    <p
      className="visually-hidden"
      role="status"
      aria-live="polite"
      aria-atomic="true"
      data-testid="announcer"
      data-turn={live?.requestId}
    >
      {text}
    </p>
  );
}

/** What the actions of panels do. The plugin is that of the panel: no parameter can name another. */
function useViewActions(
  sessionId: string,
  play: Play,
  setDraft: (update: (before: string) => string) => void,
  toStory: () => void,
) {
  const { t } = useI18n();
  const { run } = play;
  return useCallback(
    async (pluginId: string, { action, params }: ViewAction): Promise<unknown> => {
      switch (action) {
        case "draftMessage":
        case "selectChoice":
        case "selectSuggestion": {
          const line = asText(params["text"] ?? params["content"] ?? params["title"]);
          if (line) setDraft((before) => (before.trim() ? `${before.trimEnd()} ${line}` : line));
          toStory();
          return { status: "ok" };
        }
        case "invokeCommand": {
          const args = params["args"];
          const tail = Array.isArray(args) ? args.map(asText).join(" ") : asText(args);
          const command = `/${asText(params["command"]).replace(/^\//, "")} ${tail}`.trim();
          await run({ type: "execute_command", command });
          return { status: "ok" };
        }
        case "invokeRuntime":
          return rpc(sessionId, t("panels.actionUnavailable"), {
            kind: "runtime",
            pluginId,
            runtimeId: asText(params["runtimeId"]),
            payload: params["payload"] ?? {},
          });
        case "invokePluginAction":
          return rpc(sessionId, t("panels.actionUnavailable"), {
            kind: "action",
            pluginId,
            action: asText(params["action"]),
            payload: params["payload"] ?? {},
          });
        case "emitEvent":
          return rpc(sessionId, t("panels.actionUnavailable"), {
            kind: "event",
            pluginId,
            topic: asText(params["topic"]),
            payload: params["data"] ?? {},
          });
        default:
          throw new Error(t("panels.actionUnavailable"));
      }
    },
    [sessionId, run, setDraft, toStory, t],
  );
}

async function rpc(sessionId: string, unavailable: string, body: Record<string, unknown>): Promise<unknown> {
  try {
    const answer = await api.pluginRpc(sessionId, body);
    if (answer.status === "approval-required") throw new ApiError(202, "approval-required", unavailable);
    return answer;
  } catch (caught) {
    const error = toApiError(caught);
    if (error.status === 404 || error.status === 405) throw new Error(unavailable);
    throw error;
  }
}
