import type { Frame, TurnEvent } from "../api/types";

/** A turn as far as its stream has told it. Times are milliseconds of one monotonic clock, given from outside. */
export interface LiveTurn {
  requestId: string;
  turnId: string | undefined;
  /** What the player wrote, shown until the stored message is there. */
  userText: string | undefined;
  setup: boolean;
  startedAt: number;
  runtimeCount: number | undefined;
  passages: Passage[];
  runtimes: LiveRuntime[];
  events: TurnEvent[];
  error: { code: string; message: string } | undefined;
  /** What a command answered. */
  answer: string | undefined;
  finished: boolean;
  committed: boolean;
}

/** Streamed text of one runtime. */
export interface Passage {
  runtimeId: string;
  pluginId: string;
  text: string;
  complete: boolean;
}

export interface LiveRuntime {
  key: string;
  runtimeId: string;
  pluginId: string;
  stage: string;
  layer: number;
  status: "running" | "completed" | "failed" | "skipped";
  startedAt: number;
  endedAt: number | undefined;
  reason: string | undefined;
  error: string | undefined;
}

/** Bounds on what one stream may pile up in the page. */
const MAX_PASSAGE = 400_000;
const MAX_PASSAGES = 32;
const MAX_RUNTIMES = 1_000;
const MAX_EVENTS = 1_000;

export function newLiveTurn(start: {
  requestId: string;
  userText?: string | undefined;
  setup?: boolean;
  now: number;
}): LiveTurn {
  return {
    requestId: start.requestId,
    turnId: undefined,
    userText: start.userText,
    setup: start.setup ?? false,
    startedAt: start.now,
    runtimeCount: undefined,
    passages: [],
    runtimes: [],
    events: [],
    error: undefined,
    answer: undefined,
    finished: false,
    committed: false,
  };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

/** The turn after one more frame. Unknown frames change nothing. */
export function applyFrame(turn: LiveTurn, frame: Frame, now: number): LiveTurn {
  const payload = frame.payload;
  const next = frame.turnId && frame.turnId !== turn.turnId ? { ...turn, turnId: frame.turnId } : turn;
  switch (frame.type) {
    case "execution.started": {
      // A continuation in the same stream (the opening turn after setup) adds to the count.
      const more = count(payload["runtimeCount"]);
      return { ...next, runtimeCount: more === undefined ? next.runtimeCount : (next.runtimeCount ?? 0) + more };
    }
    case "runtime.started":
      return startRuntime(next, payload, now);
    case "runtime.completed":
      return endRuntime(next, payload, "completed", now);
    case "runtime.failed":
      return endRuntime(next, payload, "failed", now);
    case "runtime.skipped":
      return endRuntime(next, payload, "skipped", now);
    case "narrative.delta":
      // Reasoning is not part of the story.
      if (/reason|think/i.test(text(payload["kind"]))) return next;
      return editPassage(next, payload, (passage) => ({
        ...passage,
        text: ((payload["reset"] === true ? "" : passage.text) + text(payload["delta"])).slice(0, MAX_PASSAGE),
      }));
    case "narrative.completed":
      return editPassage(next, payload, (passage) => ({
        ...passage,
        text: (text(payload["content"]) || passage.text).slice(0, MAX_PASSAGE),
        complete: true,
      }));
    case "event.emitted": {
      if (next.events.length >= MAX_EVENTS) return next;
      const topic = text(payload["topic"]) || text(payload["eventType"]);
      if (!topic) return next;
      const event: TurnEvent = { topic, pluginId: text(payload["pluginId"]), depth: count(payload["depth"]) ?? 1 };
      return { ...next, events: [...next.events, event] };
    }
    case "command.completed": {
      const answer = text(payload["message"]).slice(0, MAX_PASSAGE);
      if (payload["ok"] !== false) return { ...next, answer: answer || undefined };
      return { ...next, error: next.error ?? { code: text(payload["code"]) || "command-failed", message: answer } };
    }
    case "error.occurred":
      return {
        ...next,
        error: { code: text(payload["code"]) || "error", message: text(payload["message"]) },
      };
    case "execution.completed": {
      const committed = payload["committed"] === true;
      return {
        ...next,
        finished: true,
        committed,
        error: next.error ?? (committed ? undefined : completionError(payload)),
        runtimes: next.runtimes.map((runtime) =>
          runtime.status === "running"
            ? { ...runtime, status: committed ? "completed" : "failed", endedAt: now }
            : runtime,
        ),
      };
    }
    default:
      return next;
  }
}

function completionError(payload: Record<string, unknown>): LiveTurn["error"] {
  const error = payload["error"];
  if (typeof error === "string") return { code: text(payload["code"]) || "error", message: error };
  if (typeof error === "object" && error !== null) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    return { code: text(code) || "error", message: text(message) };
  }
  const abort = text(payload["abortReason"]);
  return abort ? { code: "aborted", message: abort } : { code: "error", message: "" };
}

/** Error of a runtime frame, which is a text or `{code, message}`. */
export function errorText(error: unknown): string | undefined {
  if (typeof error === "string") return error;
  if (typeof error !== "object" || error === null) return undefined;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return [text(code), text(message)].filter(Boolean).join(": ") || undefined;
}

function startRuntime(turn: LiveTurn, payload: Record<string, unknown>, now: number): LiveTurn {
  const runtimeId = text(payload["runtimeId"]);
  if (!runtimeId || turn.runtimes.length >= MAX_RUNTIMES) return turn;
  const runtime: LiveRuntime = {
    key: text(payload["runId"]) || `${runtimeId}#${turn.runtimes.length}`,
    runtimeId,
    pluginId: text(payload["pluginId"]),
    stage: text(payload["stage"]),
    layer: count(payload["layer"]) ?? 0,
    status: "running",
    startedAt: now,
    endedAt: undefined,
    reason: undefined,
    error: undefined,
  };
  return { ...turn, runtimes: [...turn.runtimes, runtime] };
}

function endRuntime(
  turn: LiveTurn,
  payload: Record<string, unknown>,
  status: "completed" | "failed" | "skipped",
  now: number,
): LiveTurn {
  const runtimeId = text(payload["runtimeId"]);
  if (!runtimeId) return turn;
  const runId = text(payload["runId"]);
  const matches = (runtime: LiveRuntime) =>
    runtime.status === "running" && (runId ? runtime.key === runId : runtime.runtimeId === runtimeId);
  // A runtime that was skipped has no start of its own.
  const known = turn.runtimes.some(matches) ? turn : startRuntime(turn, payload, now);
  const micros = count(payload["durationMicros"]);
  const took = micros === undefined ? count(payload["durationMs"]) : micros / 1_000;
  let ended = false;
  return {
    ...known,
    // The stored text comes only after the commit, but no more words will.
    passages: known.passages.map((passage) =>
      passage.runtimeId === runtimeId ? { ...passage, complete: true } : passage,
    ),
    runtimes: known.runtimes.map((runtime) => {
      if (ended || !matches(runtime)) return runtime;
      ended = true;
      // The server measured the run itself. Frames arrive late and in bunches: the start is moved back when both came at once.
      const endedAt = took === undefined ? now : Math.min(now, runtime.startedAt + took);
      const startedAt =
        took === undefined ? runtime.startedAt : Math.max(turn.startedAt, Math.min(runtime.startedAt, now - took));
      return {
        ...runtime,
        status,
        startedAt,
        endedAt: Math.max(startedAt, endedAt),
        reason: text(payload["reason"]) || undefined,
        error: errorText(payload["error"]),
      };
    }),
  };
}

function editPassage(turn: LiveTurn, payload: Record<string, unknown>, edit: (passage: Passage) => Passage): LiveTurn {
  const runtimeId = text(payload["runtimeId"]);
  const at = turn.passages.findIndex((passage) => passage.runtimeId === runtimeId);
  if (at < 0) {
    if (turn.passages.length >= MAX_PASSAGES) return turn;
    const passage = edit({ runtimeId, pluginId: text(payload["pluginId"]), text: "", complete: false });
    return { ...turn, passages: [...turn.passages, passage] };
  }
  return { ...turn, passages: turn.passages.map((passage, index) => (index === at ? edit(passage) : passage)) };
}
