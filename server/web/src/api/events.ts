import { parseFrame } from "./client";

/** Event names this page listens for; `EventSource` has no "any event" listener. */
const NAMES = [
  "system.connected",
  "system.reset",
  "plugin-data.changed",
  "execution.started",
  "execution.completed",
  "narrative.completed",
] as const;

export interface StreamEvent {
  type: string;
  turnId?: string;
  payload: Record<string, unknown>;
}

export interface EventHandlers {
  onEvent(event: StreamEvent): void;
  onConnection(live: boolean): void;
}

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;

/**
 * The session's event stream, kept open until the returned function is called. The browser's own reconnecting stops at the first
 * refusal (a restarting server answers 503), so this closes and opens again with growing pauses and the last id seen.
 */
export function openEvents(sessionId: string, handlers: EventHandlers): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastId = "";
  let pause = FIRST_RETRY_MS;
  let closed = false;

  const connect = () => {
    const query = new URLSearchParams({ sessionId });
    if (lastId) query.set("lastEventId", lastId);
    source = new EventSource(`/api/events/stream?${query}`);
    source.onopen = () => {
      pause = FIRST_RETRY_MS;
      handlers.onConnection(true);
    };
    source.onerror = () => {
      source?.close();
      if (closed) return;
      handlers.onConnection(false);
      timer = setTimeout(connect, pause);
      pause = Math.min(pause * 2, LAST_RETRY_MS);
    };
    for (const name of NAMES) {
      source.addEventListener(name, (message) => {
        if (message.lastEventId) lastId = message.lastEventId;
        const event = readEvent(name, String(message.data));
        if (!event) return;
        const cursor = event.payload["cursor"];
        if (name.startsWith("system.") && typeof cursor === "string") lastId = cursor;
        handlers.onEvent(event);
      });
    }
  };
  connect();

  return () => {
    closed = true;
    if (timer !== undefined) clearTimeout(timer);
    source?.close();
  };
}

/** The data of a named event is either the whole frame or its bare payload; both are read. */
export function readEvent(name: string, data: string): StreamEvent | undefined {
  const frame = parseFrame(data);
  if (frame) return { type: name, ...(frame.turnId ? { turnId: frame.turnId } : {}), payload: frame.payload };
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const payload = value as Record<string, unknown>;
    const nested = payload["payload"];
    const turnId = payload["turnId"];
    return {
      type: name,
      ...(typeof turnId === "string" ? { turnId } : {}),
      payload: typeof nested === "object" && nested !== null ? (nested as Record<string, unknown>) : payload,
    };
  } catch {
    return undefined;
  }
}
