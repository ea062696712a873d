import { isDict, own } from "../view/pointer";

/** What every refused or failed action tells the panel: nothing of the host or its server gets there. */
export const FAILED = "Plugin UI action failed";

/** Calls of one panel that run at the same time; what comes beyond is dropped. */
export const MAX_IN_FLIGHT = 8;
const MAX_ID = 80;
const MAX_ACTION = 120;

/** What a web view may ask of its host. `params` is plain data; the plugin is not among it. */
export type Act = (params: Record<string, unknown>) => unknown;

export interface Connection {
  /** Replaces what the panel knows. */
  show(state: unknown): void;
  close(): void;
}

interface Host {
  actions: ReadonlyMap<string, Act>;
  /** Asked at every call: while a turn runs, nothing is done. */
  locked(): boolean;
}

/** Serves one panel over its port. Messages come from a package: anything that is not a call is dropped without a word. */
export function connect(port: MessagePort, host: Host): Connection {
  const running = new Set<string>();
  let closed = false;

  const answer = (id: string, result: { value: unknown } | { error: string }) => {
    running.delete(id);
    if (closed) return;
    try {
      port.postMessage({ type: "result", id, ...result });
    } catch {
      port.postMessage({ type: "result", id, error: FAILED });
    }
  };

  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (!isDict(data) || data["type"] !== "action") return;
    const id = own(data, "id");
    if (typeof id !== "string" || id === "" || id.length > MAX_ID) return;
    if (running.has(id) || running.size >= MAX_IN_FLIGHT) return;
    running.add(id);
    const action = own(data, "action");
    const params = own(data, "params");
    const act =
      typeof action === "string" && action.length <= MAX_ACTION && isDict(params)
        ? host.actions.get(action)
        : undefined;
    if (!act || host.locked()) {
      answer(id, { error: FAILED });
      return;
    }
    new Promise((resolve) => resolve(act(params as Record<string, unknown>))).then(
      (value) => answer(id, { value }),
      () => answer(id, { error: FAILED }),
    );
  };

  return {
    show(state) {
      if (!closed) port.postMessage({ type: "state", value: state });
    },
    close() {
      closed = true;
      port.close();
    },
  };
}
