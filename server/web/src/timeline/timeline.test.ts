import { describe, expect, it } from "vitest";
import type { Frame } from "../api/types";
import { applyFrame, newLiveTurn, type LiveTurn } from "../play/liveTurn";
import { compareStages, fromLive, fromRecord, layers, tally } from "./model";
import { duration, evenScale, trueScale } from "./scale";

const frame = (type: string, payload: Record<string, unknown> = {}): Frame => ({ type, turnId: "t1", payload });

function play(steps: [number, Frame][]): LiveTurn {
  return steps.reduce((turn, [now, next]) => applyFrame(turn, next, now), newLiveTurn({ requestId: "r", now: 0 }));
}

const run = (runtimeId: string, extra: Record<string, unknown> = {}) => ({
  runtimeId,
  pluginId: runtimeId.split("/")[0],
  stage: "narrative",
  layer: 0,
  ...extra,
});

describe("applyFrame", () => {
  it("collects streamed text, resets it on demand and ends with the stored text", () => {
    const delta = (text: string, more = {}) =>
      frame("narrative.delta", { ...run("narrator/story"), kind: "text", delta: text, ...more });
    let turn = play([
      [0, frame("execution.started", { runtimeCount: 2 })],
      [1, delta("The lam")],
      [2, delta("p is lit")],
    ]);
    expect(turn.passages[0]?.text).toBe("The lamp is lit");
    turn = applyFrame(turn, delta("Again", { reset: true }), 3);
    turn = applyFrame(turn, delta("hidden thought", { kind: "reasoning" }), 3);
    expect(turn.passages.map((passage) => passage.text)).toEqual(["Again"]);
    turn = applyFrame(turn, frame("narrative.completed", { ...run("narrator/story"), content: "Final." }), 4);
    expect(turn.passages[0]).toMatchObject({ text: "Final.", complete: true });
  });

  it("tracks runtimes, also skipped ones that never started and repeated runs", () => {
    const turn = play([
      [10, frame("runtime.started", run("a/x"))],
      [25, frame("runtime.completed", run("a/x", { durationMs: 12 }))],
      [26, frame("runtime.skipped", run("b/y", { reason: "no input" }))],
      [30, frame("runtime.started", run("a/x"))],
      [30, frame("runtime.started", run("c/z"))],
      [30, frame("runtime.completed", run("c/z", { durationMs: 4 }))],
      [31, frame("runtime.failed", run("a/x", { error: { code: "boom", message: "no" } }))],
    ]);
    expect(turn.runtimes.map(({ status, startedAt, endedAt }) => [status, startedAt, endedAt])).toEqual([
      ["completed", 10, 22],
      ["skipped", 26, 26],
      ["failed", 30, 31],
      ["completed", 26, 30],
    ]);
    expect(turn.runtimes[1]?.reason).toBe("no input");
    expect(turn.runtimes[2]?.error).toBe("boom: no");
  });

  it("keeps a command's answer, and takes a refused command as an error", () => {
    expect(play([[1, frame("command.completed", { ok: true, message: "d6: 3" })]]).answer).toBe("d6: 3");
    expect(play([[1, frame("command.completed", { ok: false, code: "no-dice", message: "none left" })]]).error).toEqual(
      {
        code: "no-dice",
        message: "none left",
      },
    );
  });

  it("ends a passage with its runtime and prefers the finer measure of time", () => {
    const turn = play([
      [1, frame("runtime.started", run("n/s"))],
      [2, frame("narrative.delta", { ...run("n/s"), delta: "Hi" })],
      [9, frame("runtime.completed", run("n/s", { durationMs: 0, durationMicros: 7500 }))],
    ]);
    expect(turn.passages[0]?.complete).toBe(true);
    expect(turn.runtimes[0]).toMatchObject({ startedAt: 1, endedAt: 8.5 });
  });

  it("reports a turn that was not committed, with the first error", () => {
    const turn = play([
      [1, frame("error.occurred", { code: "model-failed", message: "no answer" })],
      [2, frame("execution.completed", { committed: false, error: { code: "x", message: "y" } })],
    ]);
    expect(turn).toMatchObject({ finished: true, committed: false, error: { code: "model-failed" } });
    expect(play([[1, frame("execution.completed", { committed: false, abortReason: "player" })]]).error?.code).toBe(
      "aborted",
    );
  });

  it("ignores frames it does not know and fields of a wrong type", () => {
    const turn = play([
      [1, frame("something.new", { a: 1 })],
      [2, frame("runtime.started", { runtimeId: 7 })],
      [3, frame("narrative.delta", { runtimeId: "n", delta: { html: "<b>" } })],
      [4, frame("event.emitted", {})],
      [5, frame("execution.started", { runtimeCount: "many" })],
    ]);
    expect(turn.runtimes).toEqual([]);
    expect(turn.events).toEqual([]);
    expect(turn.passages[0]?.text).toBe("");
    expect(turn.runtimeCount).toBeUndefined();
  });
});

describe("timeline model", () => {
  it("orders rows by stage, layer and name, whatever order they come in", () => {
    const timeline = fromRecord({
      turnId: "t",
      logicalTurn: 3,
      durationMicros: 900,
      runtimes: [
        { runtimeId: "z", pluginId: "p", stage: "audit", layer: 0, status: "completed", startedMicros: 800 },
        { runtimeId: "b", pluginId: "p", stage: "pre-turn", layer: 1, status: "skipped", startedMicros: 50 },
        { runtimeId: "a", pluginId: "p", stage: "pre-turn", layer: 0, status: "failed", error: "x" },
        {
          runtimeId: "n",
          pluginId: "p",
          stage: "narrative",
          layer: 0,
          status: "completed",
          startedMicros: 60,
          durationMicros: 700,
        },
      ],
    });
    expect(timeline.rows.map((row) => row.runtimeId)).toEqual(["a", "b", "n", "z"]);
    expect(layers(timeline.rows).map((group) => [group.stage, group.layer])).toEqual([
      ["pre-turn", 0],
      ["pre-turn", 1],
      ["narrative", 0],
      ["audit", 0],
    ]);
    expect(tally(timeline.rows)).toEqual({ completed: 2, failed: 1, skipped: 1, running: 0 });
    expect(["x-own", "audit", "setup"].sort(compareStages)).toEqual(["setup", "audit", "x-own"]);
  });

  it("shows what events started in waves by depth, after the stages", () => {
    const timeline = fromRecord({
      turnId: "t",
      origin: "continuation",
      logicalTurn: 1,
      runtimes: [
        { runtimeId: "diary", pluginId: "w", stage: "event", layer: 0, depth: 2, status: "success", startedMicros: 9 },
        {
          runtimeId: "forecast",
          pluginId: "w",
          stage: "event",
          layer: 0,
          depth: 1,
          status: "success",
          startedMicros: 8,
        },
        { runtimeId: "audit", pluginId: "w", stage: "audit", layer: 0, status: "success", startedMicros: 7 },
      ],
    });
    expect(timeline.kind).toBe("opening");
    expect(timeline.rows.map((row) => [row.runtimeId, row.layer])).toEqual([
      ["audit", 0],
      ["forecast", 0],
      ["diary", 1],
    ]);
  });

  it("lets running bars grow with the clock", () => {
    const turn = play([[10, frame("runtime.started", run("a/x"))]]);
    expect(fromLive(turn, 15).rows[0]).toMatchObject({ start: 10_000, end: 15_000, status: "running" });
  });
});

describe("scales", () => {
  const group = (start: number, end: number) => ({ stage: "s", layer: 0, rows: [], start, end });
  const groups = [group(0, 100), group(100, 250), group(250, 3_000_000), group(3_000_000, 3_000_400)];

  it("give short layers room and never run backwards", () => {
    const total = 3_000_400;
    const even = evenScale(groups, total, 300);
    expect(even(100)).toBeGreaterThanOrEqual(18);
    expect(trueScale(total, 300)(100)).toBeLessThan(0.1);
    expect(even(0)).toBe(0);
    expect(even(total)).toBe(300);
    let last = -1;
    for (let at = 0; at <= total; at += 997) {
      expect(even(at)).toBeGreaterThanOrEqual(last);
      last = even(at);
    }
  });

  it("survive empty turns and turns without any duration", () => {
    expect(evenScale([], 0, 300)(5)).toBeLessThanOrEqual(300);
    expect(Number.isFinite(evenScale([group(0, 0)], 0, 300)(0))).toBe(true);
  });

  it.each([
    [0, "0 µs"],
    [420, "420 µs"],
    [3_240, "3.2 ms"],
    [420_400, "420 ms"],
    [999_600, "1 s"],
    [1_449_000, "1.4 s"],
    [125_000_000, "2 min 5 s"],
  ])("write %d µs as %s", (micros, expected) => {
    expect(duration(micros, "en")).toBe(expected);
  });
});
