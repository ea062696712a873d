import { describe, expect, it } from "vitest";
import { MAX_EVENT_CHARS, SseLimitError, SseParser, readSse, type SseEvent } from "./sse";

const STREAM = 'id: e:1\nevent: tick\ndata: {"a":1}\n\n: heartbeat\n\ndata: one\ndata: two\n\ndata:bare\r\n\r\n';
const EXPECTED: SseEvent[] = [
  { event: "tick", data: '{"a":1}', id: "e:1" },
  { event: "message", data: "one\ntwo", id: "e:1" },
  { event: "message", data: "bare", id: "e:1" },
];

describe("SseParser", () => {
  it("reads events, comments, joined data lines and ids", () => {
    expect(new SseParser().push(STREAM)).toEqual(EXPECTED);
  });

  it("gives the same events for every chunking", () => {
    for (let size = 1; size <= STREAM.length; size++) {
      const parser = new SseParser();
      const events: SseEvent[] = [];
      for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
      expect(events, `chunks of ${size}`).toEqual(EXPECTED);
    }
  });

  it("accepts all three line ends, also split between chunks", () => {
    const parser = new SseParser();
    expect(parser.push("data: a\r")).toEqual([]);
    expect(parser.push("\n\r")).toEqual([{ event: "message", data: "a", id: "" }]);
    expect(parser.push("\ndata: b\r\rdata: c\n\n").map((event) => event.data)).toEqual(["b", "c"]);
  });

  it("strips one leading byte order mark and one space after the colon", () => {
    expect(new SseParser().push("\uFEFFdata:  two spaces\n\n")[0]?.data).toBe(" two spaces");
  });

  it("ignores unknown fields, events without data, and ids with a NUL", () => {
    expect(new SseParser().push("event: empty\n\nfoo: 1\nid: a\0b\ndata\n\n")).toEqual([
      { event: "message", data: "", id: "" },
    ]);
  });

  it("refuses an endless line and an endless event", () => {
    const long = "x".repeat(MAX_EVENT_CHARS + 1);
    expect(() => new SseParser().push(long)).toThrow(SseLimitError);
    const parser = new SseParser();
    const half = "data: " + "x".repeat(MAX_EVENT_CHARS / 2 + 1) + "\n";
    parser.push(half);
    expect(() => parser.push(half)).toThrow(SseLimitError);
  });
});

function body(chunks: Uint8Array[], onCancel?: () => void): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks[next++];
      if (chunk) controller.enqueue(chunk);
      else controller.close();
    },
    cancel() {
      onCancel?.();
    },
  });
}

describe("readSse", () => {
  it("decodes characters that are split between chunks", async () => {
    const bytes = new TextEncoder().encode("data: 灯塔 🌊\n\n");
    const chunks = Array.from(bytes, (byte) => Uint8Array.of(byte));
    const events: SseEvent[] = [];
    for await (const event of readSse(body(chunks))) events.push(event);
    expect(events.map((event) => event.data)).toEqual(["灯塔 🌊"]);
  });

  it("drops an event that the end of the stream cut off", async () => {
    const events: SseEvent[] = [];
    for await (const event of readSse(body([new TextEncoder().encode("data: a\n\ndata: lost\n")]))) events.push(event);
    expect(events.map((event) => event.data)).toEqual(["a"]);
  });

  it("closes the connection when the reader stops early", async () => {
    let cancelled = false;
    const chunk = new TextEncoder().encode("data: a\n\n");
    for await (const _ of readSse(body([chunk, chunk, chunk], () => (cancelled = true)))) break;
    expect(cancelled).toBe(true);
  });
});
