import { useEffect, useId, useMemo, useRef, useState, type ReactNode } from "react";
import { useI18n } from "../i18n";
import { layers, tally, type LayerGroup, type Row, type RowStatus, type Timeline } from "./model";
import { stageName } from "./names";
import { duration, evenScale, trueScale } from "./scale";

const ROW = 22;
const HEAD = 25;
const BAR = 14;
const PAD = 10;
const MIN_BAR = 4;
/** Average width of a letter in a label, in pixels. */
const UNIT = 6.3;

/** The picture's own width, so that text in it keeps its size. */
function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(400);
  useEffect(() => {
    const element = ref.current;
    if (!element || typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.max(280, Math.floor(entry.contentRect.width)));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

interface Line {
  y: number;
  row: Row;
}

interface StageHead {
  y: number;
  stage: string;
  start: number;
  end: number;
  height: number;
}

/** Vertical places of stage headings and rows. */
function layout(groups: readonly LayerGroup[]): {
  heads: StageHead[];
  lines: Line[];
  bands: { y: number; height: number; group: LayerGroup }[];
  height: number;
} {
  const heads: StageHead[] = [];
  const lines: Line[] = [];
  const bands: { y: number; height: number; group: LayerGroup }[] = [];
  let y = 0;
  for (const group of groups) {
    let head = heads.at(-1);
    if (head?.stage !== group.stage) {
      head = { y, stage: group.stage, start: group.start, end: group.end, height: HEAD };
      heads.push(head);
      y += HEAD;
    }
    head.start = Math.min(head.start, group.start);
    head.end = Math.max(head.end, group.end);
    bands.push({ y, height: group.rows.length * ROW, group });
    for (const row of group.rows) {
      lines.push({ y, row });
      y += ROW;
    }
    head.height = y - head.y;
  }
  return { heads, lines, bands, height: y };
}

interface Props {
  timeline: Timeline;
  toScale: boolean;
}

/** A turn as a picture: one bar a runtime, grouped by stage and layer. The same facts are in {@link TimelineTable}. */
export function Gantt({ timeline, toScale }: Props) {
  const { t, locale } = useI18n();
  const [ref, width] = useWidth();
  const id = useId();
  const groups = useMemo(() => layers(timeline.rows), [timeline.rows]);
  const { heads, lines, bands, height } = useMemo(() => layout(groups), [groups]);

  // As wide as the longest name, up to a share of the picture; longer names are cut.
  const longest = Math.max(0, ...timeline.rows.map((row) => textUnits(row.runtimeId)));
  const labelWidth = Math.round(Math.min(Math.max(118, width * 0.36), Math.max(70, 24 + longest * UNIT)));
  const timeWidth = 58;
  const plotLeft = labelWidth + PAD;
  const plotWidth = Math.max(60, width - plotLeft - timeWidth);
  const scale = toScale ? trueScale(timeline.total, plotWidth) : evenScale(groups, timeline.total, plotWidth);
  const x = (at: number) => plotLeft + scale(at);
  const stages = new Set(timeline.rows.map((row) => row.stage)).size;
  const counts = tally(timeline.rows);
  const summary = t("timeline.summary", {
    runtimes: timeline.rows.length,
    stages,
    duration: duration(timeline.total, locale),
    done: counts.completed,
    failed: counts.failed,
    skipped: counts.skipped,
    running: counts.running,
  });

  return (
    <div ref={ref} className="gantt">
      <svg
        width={width}
        height={height + 4}
        viewBox={`0 0 ${width} ${height + 4}`}
        role="img"
        aria-labelledby={`${id}-title`}
        data-testid="timeline-picture"
      >
        <title id={`${id}-title`}>{summary}</title>
        <Patterns id={id} />
        {heads.map((head) => (
          <g key={head.stage}>
            <line className="gantt-rule" x1={0} x2={width} y1={head.y + HEAD - 4.5} y2={head.y + HEAD - 4.5} />
            <text className="gantt-stage" x={0} y={head.y + HEAD - 10}>
              {stageName(head.stage, t)}
            </text>
            <text className="gantt-stage-time" x={width} y={head.y + HEAD - 10} textAnchor="end">
              {duration(head.end - head.start, locale)}
            </text>
          </g>
        ))}
        {bands.map(({ y, height: tall, group }, index) => {
          const left = x(group.start);
          const right = Math.max(
            x(group.end),
            left + (group.rows.some((row) => row.status === "skipped") ? 12 : MIN_BAR),
          );
          const roomAfter = plotLeft + plotWidth - right > 48;
          return (
            <g key={index}>
              <rect className="gantt-band" x={left - 2} y={y - 1} width={right - left + 4} height={tall} rx={4} />
              <text
                className="gantt-layer"
                x={roomAfter ? right + 7 : left - 7}
                y={y + ROW / 2 + 2}
                textAnchor={roomAfter ? "start" : "end"}
              >
                {t("timeline.layerN", { n: group.layer })}
              </text>
            </g>
          );
        })}
        {lines.map(({ y, row }) => (
          <Bar
            key={row.key}
            row={row}
            y={y}
            x={x(row.start)}
            width={x(row.end) - x(row.start)}
            patterns={id}
            labelWidth={labelWidth}
            edge={width}
          />
        ))}
      </svg>
    </div>
  );
}

interface BarProps {
  row: Row;
  x: number;
  y: number;
  width: number;
  patterns: string;
  labelWidth: number;
  edge: number;
}

function Bar({ row, x, y, width, patterns, labelWidth, edge }: BarProps) {
  const { t, locale } = useI18n();
  const middle = y + ROW / 2 - 1;
  const took = duration(row.end - row.start, locale);
  const room = Math.floor((labelWidth - 22) / UNIT);
  const facts = [
    row.runtimeId,
    `${stageName(row.stage, t)}, ${t("timeline.layerN", { n: row.layer })}`,
    `${t(`status.${row.status}`)}${row.status === "skipped" ? "" : `, ${took}`}`,
    row.error ?? row.reason,
  ];
  const drawn = Math.max(MIN_BAR, width);
  return (
    <g
      className={`gantt-row gantt-${row.status}`}
      data-testid="timeline-bar"
      data-runtime={row.runtimeId}
      data-status={row.status}
      data-stage={row.stage}
      data-layer={row.layer}
    >
      <title>{facts.filter(Boolean).join("\n")}</title>
      <rect className="gantt-hit" x={0} y={y} width={edge} height={ROW - 2} rx={4} />
      <StatusMark status={row.status} x={7} y={middle} />
      <text className="gantt-label" x={19} y={middle + 4}>
        {clipMiddle(row.runtimeId, room)}
      </text>
      {row.status === "skipped" ? (
        <line className="gantt-skip" x1={x} x2={x + Math.max(10, drawn)} y1={middle} y2={middle} />
      ) : (
        <>
          <rect
            className="gantt-bar"
            x={x}
            y={middle - BAR / 2}
            width={drawn}
            height={BAR}
            rx={Math.min(3.5, drawn / 2)}
          />
          {(row.status === "failed" || row.status === "running" || row.status === "deferred") && (
            <rect
              x={x}
              y={middle - BAR / 2}
              width={drawn}
              height={BAR}
              rx={Math.min(3.5, drawn / 2)}
              fill={`url(#${patterns}-${row.status})`}
            />
          )}
        </>
      )}
      <text className="gantt-time" x={edge} y={middle + 4} textAnchor="end">
        {row.status === "skipped" ? t("status.skipped") : took}
      </text>
    </g>
  );
}

/** Letters of a text, wide ones counted twice. */
function textUnits(text: string): number {
  let units = 0;
  for (const character of text) units += (character.codePointAt(0) ?? 0) > 0x2e80 ? 2 : 1;
  return units;
}

/** A name cut in its middle: the plugin and the end of a runtime's name both tell something. */
function clipMiddle(text: string, room: number): string {
  const characters = Array.from(text);
  const fits = Math.max(6, room - (textUnits(text) - characters.length));
  if (characters.length <= fits) return text;
  const tail = Math.ceil((fits - 1) * 0.55);
  return `${characters.slice(0, fits - 1 - tail).join("")}…${characters.slice(-tail).join("")}`;
}

/** A sign for each status, so that colour is never the only one. */
export function StatusMark({ status, x, y }: { status: RowStatus; x: number; y: number }): ReactNode {
  const place = `translate(${x} ${y})`;
  switch (status) {
    case "completed":
      return <path className="mark" transform={place} d="M-4,0.2 L-1.2,3 L4,-3" />;
    case "failed":
      return <path className="mark" transform={place} d="M-3.2,-3.2 L3.2,3.2 M3.2,-3.2 L-3.2,3.2" />;
    case "skipped":
      return <path className="mark" transform={place} d="M-4,0 L4,0" />;
    case "running":
      return <circle className="mark mark-running" transform={place} r={3.2} />;
    case "deferred":
      return <path className="mark" transform={place} d="M0,-4 L0,0 L3,2" />;
  }
}

/** Fill patterns over the bars, for the same reason. */
export function Patterns({ id }: { id: string }) {
  return (
    <defs>
      <pattern id={`${id}-failed`} width="6" height="6" patternUnits="userSpaceOnUse">
        <path className="pattern-line" d="M0,0 L6,6 M6,0 L0,6" />
      </pattern>
      <pattern id={`${id}-running`} width="10" height="10" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect className="pattern-stripe" width="5" height="10" />
      </pattern>
      <pattern id={`${id}-deferred`} width="5" height="5" patternUnits="userSpaceOnUse">
        <circle className="pattern-dot" cx="2.5" cy="2.5" r="1.2" />
      </pattern>
    </defs>
  );
}
