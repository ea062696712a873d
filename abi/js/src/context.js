// The `ctx` of a call: own, frozen properties, converted when first touched. Every host function gets the call's id;
// the host refuses an id whose call has ended with code `closed`.
import { AbortController, fireSignal } from "./abort.js";

const freeze = Object.freeze;
const defineProperty = Object.defineProperty;
const reflectDefine = Reflect.defineProperty;
const controllers = new Map();

/** Flags of a call, as the host sends them. */
export const WRITABLE = 1;
export const EFFECTS = 2;
export const SERVICES = 4;

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

function unavailable() {
  const error = new Error("no provider of this service is available here");
  error.name = "ServiceError";
  error.code = "unavailable";
  return error;
}

export function makeContext(h, id, names, inputNames, flags) {
  const ctx = {};
  for (let i = 0; i < names.length; i++) lazy(ctx, names[i], () => (names[i] === "activePluginIds" ? new Set(h.field(id, i)) : h.field(id, i)));
  if (inputNames !== undefined) {
    lazy(ctx, "inputs", () => {
      const slots = {};
      for (let i = 0; i < inputNames.length; i++) lazy(slots, inputNames[i], () => h.input(id, i));
      return freeze(slots);
    });
  }
  lazy(ctx, "pluginData", () => pluginData(h, id, (flags & WRITABLE) !== 0));
  lazy(ctx, "store", () => store(h, id));
  const written = { count: 0 };
  lazy(ctx, "world", () => world(h, id, written));
  lazy(ctx, "random", () => freeze({ int: (min, max) => h.randomInt(id, min, max) }));
  lazy(ctx, "progress", () => freeze({ report: (effect) => h.progress(id, effect) }));
  lazy(ctx, "logger", () => logger(h, id));
  lazy(ctx, "signal", () => signalOf(h, id));
  lazy(ctx, "services", () => freeze({
    async discover() {
      return [];
    },
    async call() {
      throw unavailable();
    },
  }));
  defineProperty(ctx, "getOwnSettings", { __proto__: null, value: () => h.settings(id), enumerable: true });
  if ((flags & EFFECTS) !== 0) {
    lazy(ctx, "tools", () => freeze({
      async call(name, args) {
        const answer = await h.request(id, "toolCall", String(name), args === undefined ? {} : args);
        written.count++;
        return answer;
      },
    }));
    lazy(ctx, "gateway", () => gateway(h, id));
  }
  return freeze(ctx);
}
