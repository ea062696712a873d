import { act, cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { I18nProvider } from "../i18n";
import { PlayView } from "./PlayView";

/** A server with one session, whose action stream the test writes by hand. */
class FakeServer {
  session = { id: "s1", worldId: "bay", locale: "en", status: "active", phase: "playing", completedPlayerTurns: 0 };
  execution: Record<string, unknown> = { status: "idle" };
  messages: Record<string, unknown>[] = [];
  turns: Record<string, unknown>[] = [];
  data: { key: string; value: unknown }[] = [];
  requests: { method: string; path: string; body: unknown }[] = [];
  /** Answers to actions, first come first served; a function gets the stream's controller. */
  actions: (((stream: Stream) => void) | Response)[] = [];

  fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const path = String(input).replace(/^\/api/, "");
    const method = init?.method ?? "GET";
    this.requests.push({ method, path, body: init?.body ? JSON.parse(String(init.body)) : undefined });
    const json = (value: unknown, status = 200) =>
      new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });
    if (path === "/actions") {
      const next = this.actions.shift();
      if (next === undefined) throw new Error("no answer prepared");
      if (next instanceof Response) return next;
      const body = new ReadableStream<Uint8Array>({ start: (controller) => next(new Stream(controller)) });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (path === "/sessions/s1") return json(this.session);
    if (path === "/sessions/s1/execution") return json(this.execution);
    if (path === "/sessions/s1/messages") return json({ items: this.messages });
    if (path === "/sessions/s1/turns") return json({ items: this.turns });
    if (path === "/sessions/s1/plugin-data/quest-log/quests") return json({ items: this.data });
    if (path === "/sessions/s1/abort") return json({ error: "no such route" }, 404);
    if (path === "/sessions/s1/plugins") {
      return json({
        commands: [{ commandId: "c", name: "roll" }],
        items: [{ id: "narrator", displayName: "The Teller" }],
      });
    }
    if (path === "/worlds/bay") return json({ id: "bay", name: "Lantern Bay" });
    if (path.startsWith("/ui-specs")) {
      const view = {
        component: "Text",
        repeat: { statePath: "/entries" },
        props: { content: { $item: "value.title" } },
      };
      return json({
        right: [
          {
            pluginId: "quest-log",
            specs: [
              {
                id: "q",
                label: "Quests",
                dataSource: { namespace: "quests" },
                emptyState: { message: "No quests yet" },
                view,
              },
            ],
          },
        ],
      });
    }
    return json({ error: `no route ${path}`, code: "not_found" }, 404);
  };
}

class Stream {
  #controller: ReadableStreamDefaultController<Uint8Array>;
  constructor(controller: ReadableStreamDefaultController<Uint8Array>) {
    this.#controller = controller;
  }
  send(type: string, payload: Record<string, unknown> = {}) {
    const frame = JSON.stringify({ type, sessionId: "s1", turnId: "t1", payload });
    this.#controller.enqueue(new TextEncoder().encode(`data: ${frame}\n\n`));
  }
  end() {
    this.#controller.close();
  }
}

class FakeEventSource {
  static last: FakeEventSource | undefined;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  listeners = new Map<string, (message: { data: string; lastEventId: string }) => void>();
  constructor() {
    FakeEventSource.last = this;
  }
  addEventListener(name: string, listener: (message: { data: string; lastEventId: string }) => void) {
    this.listeners.set(name, listener);
  }
  emit(type: string, payload: unknown, turnId = "t9") {
    this.listeners.get(type)?.({ data: JSON.stringify({ type, turnId, payload }), lastEventId: "e:1" });
  }
  close() {}
}

let server: FakeServer;

beforeEach(() => {
  server = new FakeServer();
  vi.stubGlobal("fetch", server.fetch);
  vi.stubGlobal("EventSource", FakeEventSource);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

async function open() {
  render(
    <I18nProvider initial="en">
      <PlayView sessionId="s1" />
    </I18nProvider>,
  );
  await screen.findByText("No quests yet");
}

async function say(text: string) {
  const composer = await screen.findByTestId("composer");
  fireEvent.change(composer, { target: { value: text } });
  fireEvent.keyDown(composer, { key: "Enter" });
}

const story = { runtimeId: "narrator/story", pluginId: "narrator", stage: "narrative", layer: 0 };

describe("a turn on the page", () => {
  it("streams in, is drawn, and ends as what the server stored", async () => {
    let stream: Stream | undefined;
    server.actions.push((opened) => (stream = opened));
    await open();
    await say("I climb.");
    await waitFor(() => expect(stream).toBeDefined());
    await act(async () => {
      stream?.send("execution.started", { runtimeCount: 2 });
      stream?.send("runtime.started", story);
      stream?.send("narrative.delta", { ...story, kind: "text", delta: "The stair " });
      stream?.send("narrative.delta", { ...story, kind: "text", delta: "is wet." });
    });
    const passage = await screen.findByText("The stair is wet.");
    expect(passage.closest("[data-testid=story-message]")?.getAttribute("aria-busy")).toBe("true");
    expect(screen.getByText("The Teller")).toBeTruthy();
    expect(screen.getByText("I climb.")).toBeTruthy();
    expect(screen.getByTestId("timeline-bar").dataset["status"]).toBe("running");
    // While it streams, nothing is read out but that the turn began.
    expect(screen.getByTestId("announcer").textContent).toBe("Turn started.");

    server.messages = [
      { id: "m1", turnId: "t1", role: "user", content: "I climb." },
      {
        id: "m2",
        turnId: "t1",
        role: "assistant",
        content: "The stair is wet. You climb.",
        sourcePluginId: "narrator",
      },
    ];
    server.data = [{ key: "lamp", value: { title: "The ninth lamp" } }];
    await act(async () => {
      stream?.send("plugin-data.changed", {
        pluginId: "quest-log",
        changes: [{ namespace: "quests", key: "lamp", value: { title: "The ninth lamp" }, operation: "set" }],
      });
      stream?.send("execution.completed", { committed: true });
      stream?.end();
    });
    await screen.findByText("The stair is wet. You climb.");
    expect(screen.getAllByTestId("story-message")).toHaveLength(2);
    expect(within(screen.getByTestId("panel-quest-log")).getByText("The ninth lamp")).toBeTruthy();
    expect(screen.getByTestId("announcer").textContent).toBe("Turn finished. The stair is wet. You climb.");
    expect(screen.queryByTestId("turn-progress")).toBeNull();
  });

  it("says why it failed, and tries the same line again with a new request", async () => {
    const failing = (stream: Stream) => {
      stream.send("error.occurred", { code: "model-unreachable", message: "the model did not answer" });
      stream.send("execution.completed", { committed: false });
      stream.end();
    };
    server.actions.push(failing, failing);
    await open();
    await say("I climb.");
    const banner = await screen.findByTestId("error-banner");
    expect(banner.textContent).toContain("Nothing of it was kept");
    expect(banner.textContent).toContain("the model did not answer");
    fireEvent.click(within(banner).getByText("Try again"));
    await waitFor(() => expect(server.requests.filter((request) => request.path === "/actions")).toHaveLength(2));
    const bodies = server.requests
      .filter((request) => request.path === "/actions")
      .map((request) => request.body as { requestId: string; payload: unknown });
    expect(bodies[1]?.payload).toEqual({ content: "I climb." });
    expect(bodies[1]?.requestId).not.toBe(bodies[0]?.requestId);

    fireEvent.click(within(await screen.findByTestId("error-banner")).getByLabelText("Dismiss"));
    expect((screen.getByTestId("composer") as HTMLTextAreaElement).value).toBe("I climb.");
  });

  it("explains a refusal before the stream in plain words", async () => {
    server.actions.push(new Response(JSON.stringify({ error: "busy", code: "session_busy" }), { status: 409 }));
    await open();
    await say("/roll 6");
    expect((await screen.findByTestId("error-banner")).textContent).toContain(
      "Another turn of this story is still running",
    );
    const action = server.requests.find((request) => request.path === "/actions");
    expect(action?.body).toMatchObject({ type: "execute_command", payload: { command: "/roll 6" } });
  });

  it("shows what a command answered where it was given", async () => {
    server.messages = [{ id: "m1", turnId: "t0", role: "assistant", content: "It is dark." }];
    server.actions.push((stream) => {
      stream.send("command.completed", { ok: true, message: "d6: 4" });
      stream.send("execution.completed", { committed: true });
      stream.end();
    });
    await open();
    await say("/roll 6");
    const note = (await screen.findByText("d6: 4")).closest("[data-role=note]");
    expect(screen.getByTestId("announcer").textContent).toContain("d6: 4");
    server.messages.push({ id: "m2", turnId: "t2", role: "assistant", content: "A light comes on." });
    await act(async () => FakeEventSource.last?.emit("execution.completed", { committed: true }));
    const later = (await screen.findByText("A light comes on.")).closest("article") as HTMLElement;
    expect(note?.compareDocumentPosition(later)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
  });

  it("does not lose a turn whose stream was cut: it shows the result when the server tells of it", async () => {
    server.actions.push((stream) => {
      stream.send("execution.started", { runtimeCount: 1 });
      stream.end();
    });
    await open();
    await say("I climb.");
    expect((await screen.findByTestId("error-banner")).textContent).toContain("The server finishes it");
    expect(screen.queryByText("Try again")).toBeNull();
    server.messages = [{ id: "m1", turnId: "t1", role: "assistant", content: "You climbed." }];
    await act(async () => FakeEventSource.last?.emit("execution.completed", { committed: true }, "t1"));
    await screen.findByText("You climbed.");
    expect(screen.queryByTestId("error-banner")).toBeNull();
  });

  it("locks while another window runs a turn", async () => {
    await open();
    await act(async () => FakeEventSource.last?.emit("execution.started", {}));
    fireEvent.change(screen.getByTestId("composer"), { target: { value: "Me too" } });
    fireEvent.keyDown(screen.getByTestId("composer"), { key: "Enter" });
    expect(server.requests.some((request) => request.path === "/actions")).toBe(false);
    await act(async () => FakeEventSource.last?.emit("execution.completed", { committed: true }));
    expect((screen.getByTestId("send") as HTMLButtonElement).disabled).toBe(false);
  });

  it("is locked from the start when a turn is running already", async () => {
    server.execution = { status: "running", turnId: "t5" };
    await open();
    await act(async () => FakeEventSource.last?.emit("system.connected", { cursor: "e:3" }));
    await screen.findByText(/running in another window/);
    await act(async () => FakeEventSource.last?.emit("execution.completed", { committed: true }, "t5"));
    expect(screen.queryByText(/running in another window/)).toBeNull();
  });

  it("offers no stop button any more once the server has said that it cannot stop turns", async () => {
    let stream: Stream | undefined;
    server.actions.push((opened) => (stream = opened));
    await open();
    await say("I climb.");
    fireEvent.click(await screen.findByTestId("stop"));
    expect((await screen.findByTestId("error-banner")).textContent).toContain("cannot stop a running turn");
    expect(screen.queryByTestId("stop")).toBeNull();
    await act(async () => stream?.end());
  });

  it("does not send with the Enter that picks an input method's candidate", async () => {
    await open();
    const composer = screen.getByTestId("composer");
    fireEvent.change(composer, { target: { value: "ni hao" } });
    fireEvent.keyDown(composer, { key: "Enter", isComposing: true });
    fireEvent.keyDown(composer, { key: "Enter", shiftKey: true });
    expect(server.requests.some((request) => request.path === "/actions")).toBe(false);
  });

  it("moves one and the same panel into the large view, and gives the focus back", async () => {
    server.data = [{ key: "lamp", value: { title: "The ninth lamp" } }];
    render(
      <I18nProvider initial="en">
        <PlayView sessionId="s1" />
      </I18nProvider>,
    );
    const text = await screen.findByText("The ninth lamp");
    const button = screen.getByTestId("enlarge-quest-log");
    button.focus();
    fireEvent.click(button);
    const dialog = await screen.findByRole("dialog");
    expect(dialog.contains(text)).toBe(true);
    fireEvent.keyDown(dialog, { key: "Escape" });
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(screen.getByTestId("panel-quest-log").contains(text)).toBe(true);
    await waitFor(() => expect(document.activeElement).toBe(button));
  });
});
