import type { TurnEvent, TurnRecord } from "../api/types";
import { errorText, type LiveTurn } from "../play/liveTurn";

export type RowStatus = "completed" | "failed" | "skipped" | "running" | "deferred";

/** One runtime of a turn. Times are microseconds since the turn began. */
export interface Row {
  key: string;
  runtimeId: string;
  pluginId: string;
  stage: string;
  layer: number;
  status: RowStatus;
  start: number;
  end: number;
  reason: string | undefined;
  error: string | undefined;
}

export interface Timeline {
  turnId: string;
  kind: "setup" | "opening" | "turn" | "other";
  logicalTurn: number | undefined;
  live: boolean;
  committed: boolean;
  total: number;
  rows: Row[];
  events: TurnEvent[];
}

/** Rows of one layer, and of one stage: the groups of the picture. */
export interface LayerGroup {
  stage: string;
  layer: number;
  rows: Row[];
  start: number;
  end: number;
}

const STAGES = ["setup", "command", "pre-turn", "narrative", "post-turn", "audit", "event"];

/** Known stages in the order a turn walks them; unknown ones after them, by name. */
export function compareStages(a: string, b: string): number {
  const rank = (stage: string) => {
    const at = STAGES.indexOf(stage);
    return at < 0 ? STAGES.length : at;
  };
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}

function compareRows(a: Row, b: Row): number {
  return (
    compareStages(a.stage, b.stage) ||
    a.layer - b.layer ||
    // Not by start first: rows of a running turn would change places.
    (a.runtimeId < b.runtimeId ? -1 : a.runtimeId > b.runtimeId ? 1 : 0) ||
    a.start - b.start
  );
}

export function fromRecord(record: TurnRecord): Timeline {
  const rows = (record.runtimes ?? []).map((runtime, index): Row => {
    const start = micros(runtime.startedMicros);
    return {
      key: `${runtime.runtimeId}#${index}`,
      runtimeId: runtime.runtimeId,
      pluginId: runtime.pluginId,
      stage: runtime.stage,
      // What events start has no layer of its own: it runs in waves, by the depth of the event.
      layer: runtime.stage === "event" ? (runtime.depth ?? 1) - 1 : (runtime.layer ?? 0),
      status: rowStatus(runtime.status),
      start,
      end: start + micros(runtime.durationMicros),
      reason: runtime.reason,
      error: errorText(runtime.error),
    };
  });
  rows.sort(compareRows);
  const setup = record.origin === "setup" || (rows.length > 0 && rows.every((row) => row.stage === "setup"));
  return {
    turnId: record.turnId,
    kind: setup
      ? "setup"
      : record.origin === "continuation"
        ? "opening"
        : record.logicalTurn === undefined
          ? "other"
          : "turn",
    logicalTurn: record.logicalTurn,
    live: false,
    committed: record.committed !== false,
    total: Math.max(micros(record.durationMicros), ...rows.map((row) => row.end), 0),
    rows,
    events: record.events ?? [],
  };
}

export function fromLive(turn: LiveTurn, now: number): Timeline {
  const since = (at: number) => Math.max(0, Math.round((at - turn.startedAt) * 1_000));
  const rows = turn.runtimes.map((runtime): Row => ({
    key: runtime.key,
    runtimeId: runtime.runtimeId,
    pluginId: runtime.pluginId,
    stage: runtime.stage,
    layer: runtime.layer,
    status: runtime.status,
    start: since(runtime.startedAt),
    end: since(runtime.endedAt ?? now),
    reason: runtime.reason,
    error: runtime.error,
  }));
  rows.sort(compareRows);
  return {
    turnId: turn.turnId ?? turn.requestId,
    kind: turn.setup ? "setup" : "turn",
    logicalTurn: undefined,
    live: !turn.finished,
    committed: turn.committed,
    total: Math.max(since(now), ...rows.map((row) => row.end), 0),
    rows,
    events: turn.events,
  };
}

export function layers(rows: readonly Row[]): LayerGroup[] {
  const groups: LayerGroup[] = [];
  for (const row of rows) {
    let group = groups.at(-1);
    if (!group || group.stage !== row.stage || group.layer !== row.layer) {
      group = { stage: row.stage, layer: row.layer, rows: [], start: row.start, end: row.end };
      groups.push(group);
    }
    group.rows.push(row);
    group.start = Math.min(group.start, row.start);
    group.end = Math.max(group.end, row.end);
  }
  return groups;
}

export function tally(rows: readonly Row[]): Record<"completed" | "failed" | "skipped" | "running", number> {
  const counts = { completed: 0, failed: 0, skipped: 0, running: 0 };
  for (const row of rows) counts[row.status === "deferred" ? "completed" : row.status]++;
  return counts;
}

function rowStatus(status: string): RowStatus {
  switch (status) {
    case "failed":
    case "error":
    case "timeout":
    case "aborted":
      return "failed";
    case "skipped":
    case "deferred":
    case "running":
      return status;
    default:
      return "completed";
  }
}

function micros(value: number | undefined): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
