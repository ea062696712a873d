/** Server-sent events read from a `fetch` body: `EventSource` cannot POST, so the action stream needs its own reader. */

export interface SseEvent {
  event: string;
  data: string;
  id: string;
}

/** A stream that sends a line or an event larger than this is broken or hostile. Characters. */
export const MAX_EVENT_CHARS = 8 * 1024 * 1024;

export class SseLimitError extends Error {
  constructor() {
    super(`a server-sent event is larger than ${MAX_EVENT_CHARS} characters`);
    this.name = "SseLimitError";
  }
}

/** Incremental parser of the `text/event-stream` format: any chunking, any of the three line ends, comments, several `data` lines. */
export class SseParser {
  #line = "";
  #sawCarriageReturn = false;
  #atStart = true;
  #data: string[] = [];
  #dataChars = 0;
  #event = "";
  #lastId = "";

  /** Feeds a piece of text and returns the events that it completed. Throws {@link SseLimitError}. */
  push(chunk: string): SseEvent[] {
    const events: SseEvent[] = [];
    let text = chunk;
    if (this.#atStart && text.length > 0) {
      this.#atStart = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    let from = 0;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit !== 10 && unit !== 13) {
        this.#sawCarriageReturn = false;
        continue;
      }
      // "\r\n" is one line end, even when the two halves come in different chunks.
      if (unit === 10 && this.#sawCarriageReturn) {
        this.#sawCarriageReturn = false;
        from = at + 1;
        continue;
      }
      this.#sawCarriageReturn = unit === 13;
      const line = this.#line + text.slice(from, at);
      this.#line = "";
      from = at + 1;
      const event = this.#takeLine(line);
      if (event) events.push(event);
    }
    this.#line += text.slice(from);
    if (this.#line.length > MAX_EVENT_CHARS) throw new SseLimitError();
    return events;
  }

  #takeLine(line: string): SseEvent | undefined {
    if (line === "") return this.#dispatch();
    if (line.startsWith(":")) return undefined;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") {
      this.#data.push(value);
      this.#dataChars += value.length;
      if (this.#dataChars > MAX_EVENT_CHARS) throw new SseLimitError();
    } else if (field === "event") {
      this.#event = value;
    } else if (field === "id" && !value.includes("\0")) {
      this.#lastId = value;
    }
    return undefined;
  }

  #dispatch(): SseEvent | undefined {
    const data = this.#data;
    const event = this.#event;
    this.#data = [];
    this.#dataChars = 0;
    this.#event = "";
    if (data.length === 0) return undefined;
    return { event: event || "message", data: data.join("\n"), id: this.#lastId };
  }
}

/** Events of a response body, in order. An event cut off by the end of the body is dropped, as the format demands. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Runs on an early `break` too, so that the connection does not stay open.
    await reader.cancel().catch(() => undefined);
  }
}
