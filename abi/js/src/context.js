// The `ctx` of a call: own, frozen properties, converted when first touched. Every host function gets the call's id;
// the host refuses an id whose call has ended with code `closed`.
import { AbortController, AbortSignal, fireSignal } from "./abort.js";
import { coded } from "./errors.js";

const freeze = Object.freeze;
const defineProperty = Object.defineProperty;
const reflectDefine = Reflect.defineProperty;
const controllers = new Map();

/** Flags of a call, as the host sends them. */
export const WRITABLE = 1;
export const EFFECTS = 2;
export const SERVICES = 4;
export const VIEW = 8;
export const GATEWAY = 16;

function lazy(target, name, make) {
  let value;
  let made = false;
  defineProperty(target, name, {
    __proto__: null,
    get() {
      if (!made) {
        value = make();
        made = true;
      }
      return value;
    },
    enumerable: true,
    configurable: false,
  });
}

/** A member of a large document: converted when first read, plain data from then on. */
export function makeLazyMember(h) {
  return (target, key, call, document, node) => {
    let value;
    let made = false;
    const settle = (data) => {
      value = data;
      made = true;
      // A frozen object keeps its accessor; it answers with the same value.
      reflectDefine(target, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    };
    defineProperty(target, key, {
      __proto__: null,
      get() {
        if (!made) settle(h.node(call, document, node));
        return value;
      },
      set: settle,
      enumerable: true,
      configurable: true,
    });
  };
}

function signalOf(h, id) {
  let controller = controllers.get(id);
  if (controller === undefined) {
    // Throws when the call has ended; a controller made before would never be let go.
    const aborted = h.watch(id);
    controller = new AbortController();
    controllers.set(id, controller);
    if (aborted) controller.abort();
  }
  return controller.signal;
}

export function abortContext(id, name, message) {
  const controller = controllers.get(id);
  controllers.delete(id);
  if (controller !== undefined) fireSignal(controller.signal, new DOMException(message, name));
}

export function endContext(id) {
  controllers.delete(id);
}

function pluginData(h, id, writable) {
  const data = {
    async get(namespace, key) {
      return h.dataGet(id, namespace, key);
    },
    async list(namespace) {
      return h.dataList(id, namespace);
    },
  };
  if (writable) {
    data.set = async (namespace, key, value) => h.dataSet(id, namespace, key, value);
    data.delete = async (namespace, key) => h.dataDelete(id, namespace, key);
    data.update = async (namespace, key, ops) => h.dataUpdate(id, namespace, key, ops);
  }
  return freeze(data);
}

function store(h, id) {
  const call = (method) => async (...args) => h.store(id, method, args);
  const view = {
    async getPluginData(namespace, key) {
      const value = h.dataGet(id, namespace, key);
      return value === null ? null : { key, value };
    },
    async listPluginData(namespace) {
      return h.dataList(id, namespace).map(({ key, value }) => ({ key, value }));
    },
  };
  for (const method of ["getSession", "listPlayerInputs", "listTurnMessages", "readTurnMessages", "savePlayerInput", "setPluginData"]) {
    view[method] = call(method);
  }
  return freeze(view);
}

// Characters and their schema show what the call's own tools have written since; the rest is frozen with the execution.
function world(h, id, written) {
  const view = {};
  for (const part of ["worldRecord", "dimensions", "seats", "dimensionProviderPluginId"]) {
    lazy(view, part, () => h.world(id, part));
  }
  for (const part of ["characterSchema", "characters"]) {
    let value;
    let seen = -1;
    defineProperty(view, part, {
      __proto__: null,
      get() {
        if (seen !== written.count) {
          value = h.world(id, part);
          seen = written.count;
        }
        return value;
      },
      enumerable: true,
      configurable: false,
    });
  }
  return freeze(view);
}

const loggers = ["debug", "info", "warn", "error"];
function logger(h, id) {
  const made = {};
  loggers.forEach((name, level) => {
    made[name] = (message, meta) => h.logFor(id, level, String(message), meta);
  });
  return freeze(made);
}

function gateway(h, id) {
  const strip = (options) => {
    if (options === null || typeof options !== "object") throw new TypeError("gateway methods take an options object");
    const { signal, ...rest } = options;
    return [rest, signal];
  };
  const method = (kind) => async (options) => {
    const [rest, signal] = strip(options);
    return withSignal(signal, () => h.request(id, kind, "", plainSchema(rest)));
  };
  return freeze({ generateText: method("generateText"), generateObject: method("generateObject") });
}

// A zod schema given to generateObject goes to the host as JSON Schema.
function plainSchema(options) {
  const schema = options.schema;
  if (schema !== null && typeof schema === "object" && typeof schema.toJSONSchema === "function") {
    return { ...options, schema: schema.toJSONSchema() };
  }
  return options;
}

function withSignal(signal, begin) {
  if (signal === undefined || signal === null) return begin();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    begin().then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

const MAX_TIMEOUT_MS = 2147483647;

// SVC-4, SVC-5, SVC-11
function services(h, id) {
  return freeze({
    async discover(contract) {
      return h.discover(id, contract);
    },
    async call(request, options) {
      if (request === null || typeof request !== "object") throw coded("invalid-input", "services.call takes {pluginId, name, contract, input} or {contract, input}", "TypeError");
      if (options !== undefined && (options === null || typeof options !== "object")) throw coded("invalid-input", "the options of services.call are {timeoutMs?, signal?}", "TypeError");
      const timeoutMs = options?.timeoutMs;
      const signal = options?.signal ?? undefined;
      if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
        throw coded("invalid-input", `timeoutMs is a number above 0 and at most ${MAX_TIMEOUT_MS}`, "RangeError");
      }
      if (signal !== undefined && !(signal instanceof AbortSignal)) throw coded("invalid-input", "signal is an AbortSignal", "TypeError");
      if (signal?.aborted) throw signal.reason;
      const [answer, operation] = h.service(id, request, timeoutMs ?? 0);
      if (signal === undefined) return answer;
      return new Promise((resolve, reject) => {
        // An answer that is there already wins: what it staged counts.
        const abort = () => {
          if (h.abandon(id, operation)) reject(signal.reason);
        };
        signal.addEventListener("abort", abort, { once: true });
        answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
      });
    },
  });
}

export function makeContext(h, id, names, inputNames, flags) {
  const ctx = {};
  for (let i = 0; i < names.length; i++) lazy(ctx, names[i], () => (names[i] === "activePluginIds" ? new Set(h.field(id, i)) : h.field(id, i)));
  if ((flags & VIEW) === 0) {
    lazy(ctx, "inputs", () => {
      const slots = {};
      for (let i = 0; i < inputNames.length; i++) lazy(slots, inputNames[i], () => h.input(id, i));
      return freeze(slots);
    });
  }
  lazy(ctx, "pluginData", () => pluginData(h, id, (flags & WRITABLE) !== 0));
  const written = { count: 0 };
  lazy(ctx, "world", () => {
    h.worldTaken(id);
    return world(h, id, written);
  });
  lazy(ctx, "random", () => freeze({ int: (min, max) => h.randomInt(id, min, max) }));
  if ((flags & VIEW) === 0) {
    lazy(ctx, "store", () => store(h, id));
    lazy(ctx, "progress", () => freeze({ report: (effect) => h.progress(id, effect) }));
  }
  lazy(ctx, "logger", () => logger(h, id));
  lazy(ctx, "signal", () => signalOf(h, id));
  lazy(ctx, "services", () => services(h, id));
  defineProperty(ctx, "getOwnSettings", { __proto__: null, value: () => h.settings(id), enumerable: true });
  if ((flags & EFFECTS) !== 0) {
    lazy(ctx, "tools", () => freeze({
      async call(name, args) {
        const answer = await h.request(id, "toolCall", String(name), args === undefined ? {} : args);
        written.count++;
        return answer;
      },
    }));
  }
  if ((flags & (EFFECTS | GATEWAY)) !== 0) lazy(ctx, "gateway", () => gateway(h, id));
  return freeze(ctx);
}
