import { afterEach, describe, expect, it } from "vitest";
import { connect, FAILED, MAX_IN_FLIGHT, type Act } from "./bridge";
import { checkUiState, MAX_UI_STATE_BYTES } from "./uiState";

interface Answer {
  type: string;
  id?: string;
  value?: unknown;
  error?: string;
}

/** A panel's side of a connection. */
class Panel {
  readonly heard: Answer[] = [];
  readonly #port: MessagePort;
  constructor(port: MessagePort) {
    this.#port = port;
    port.onmessage = ({ data }: MessageEvent<Answer>) => this.heard.push(data);
  }
  send(message: unknown) {
    this.#port.postMessage(message);
  }
  /** Everything that was heard, once the port is quiet. */
  async settled(): Promise<Answer[]> {
    for (let before = -1; before !== this.heard.length; ) {
      before = this.heard.length;
      await new Promise((done) => setTimeout(done, 10));
    }
    return this.heard;
  }
}

const open: (() => void)[] = [];
afterEach(() => open.splice(0).forEach((close) => close()));

function joined(actions: Record<string, Act>, locked = () => false) {
  const { port1, port2 } = new MessageChannel();
  const connection = connect(port1, { actions: new Map(Object.entries(actions)), locked });
  const panel = new Panel(port2);
  open.push(() => {
    connection.close();
    port2.close();
  });
  return { connection, panel };
}

describe("the bridge to a web view", () => {
  it("answers calls, and tells nothing of how one failed", async () => {
    const { panel } = joined({
      add: (params) => Number(params["a"]) + 1,
      fails: () => Promise.reject(new Error("secret path /srv/x")),
      throws: () => {
        throw new Error("secret");
      },
      clumsy: () => () => "a function cannot cross",
    });
    for (const [at, action] of ["add", "fails", "throws", "clumsy", "missing", "__proto__"].entries()) {
      panel.send({ type: "action", id: String(at), action, params: { a: 1 } });
    }
    const answers = await panel.settled();
    expect(answers.find((answer) => answer.id === "0")).toEqual({ type: "result", id: "0", value: 2 });
    for (const id of ["1", "2", "3", "4", "5"]) {
      expect(answers.filter((answer) => answer.id === id)).toEqual([{ type: "result", id, error: FAILED }]);
    }
  });

  it("drops what is no call, and every call beyond the limit", async () => {
    let ran = 0;
    const { panel } = joined({ waits: () => (ran += 1, new Promise(() => {})) });
    for (const nothing of [null, 7, "x", [], {}, { type: "state" }, { type: "action" }, { type: "action", id: "" }]) {
      panel.send(nothing);
    }
    panel.send({ type: "action", id: "i".repeat(81), action: "waits", params: {} });
    for (let at = 0; at < MAX_IN_FLIGHT + 5; at += 1) {
      panel.send({ type: "action", id: `c${at}`, action: "waits", params: {} });
      panel.send({ type: "action", id: `c${at}`, action: "waits", params: {} });
    }
    expect(await panel.settled()).toEqual([]);
    expect(ran).toBe(MAX_IN_FLIGHT);
  });

  it("does nothing while it is locked, and says so", async () => {
    let locked = true;
    let ran = 0;
    const { panel } = joined({ go: () => (ran += 1) }, () => locked);
    panel.send({ type: "action", id: "a", action: "go", params: {} });
    expect(await panel.settled()).toEqual([{ type: "result", id: "a", error: FAILED }]);
    locked = false;
    panel.send({ type: "action", id: "a", action: "go", params: {} });
    expect((await panel.settled()).at(-1)).toEqual({ type: "result", id: "a", value: 1 });
    expect(ran).toBe(1);
  });

  it("gives late answers to nobody", async () => {
    let finish = (_value: unknown) => {};
    const { connection, panel } = joined({ late: () => new Promise((done) => (finish = done)) });
    panel.send({ type: "action", id: "a", action: "late", params: {} });
    await panel.settled();
    connection.close();
    finish(1);
    connection.show({});
    expect(await panel.settled()).toEqual([]);
  });
});

describe("what a panel keeps for itself", () => {
  it("is JSON of at most 32 KiB", () => {
    expect(checkUiState({ draft: "x", __proto__: null })).toEqual({ draft: "x" });
    expect(checkUiState(null)).toBeNull();
    const fits = "é".repeat((MAX_UI_STATE_BYTES - 2) / 2);
    expect(checkUiState(fits)).toBe(fits);
    for (const bad of [`${fits}x`, undefined, () => 1, 1n, Symbol("x")]) {
      expect(() => checkUiState(bad)).toThrow();
    }
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(() => checkUiState(cycle)).toThrow();
  });
});
