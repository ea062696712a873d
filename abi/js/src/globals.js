// The web globals plugin code relies on, made from the host's few functions and from well-kept packages.
import { atob, btoa } from "./base64.js";
import { clone } from "./clone.js";
import { describeError } from "./errors.js";
import { installLocaleMethods, liveInUtc } from "./locale-methods.js";
import { AbortController, AbortSignal, Event, EventTarget } from "./abort.js";

let host;
let load;
const callbacks = new Map();

export const timers = {
  set(callback, ms, repeat, args) {
    if (typeof callback !== "function") throw new TypeError("the timer callback must be a function");
    const delay = Number(ms);
    const id = host.setTimer(Number.isFinite(delay) && delay > 1 ? Math.min(delay, 2147483647) : 1, repeat);
    callbacks.set(id, { callback, repeat, args });
    return id;
  },
  clear(id) {
    if (callbacks.delete(id)) host.clearTimer(id);
  },
  fire(id) {
    const timer = callbacks.get(id);
    if (timer === undefined) return;
    if (!timer.repeat) callbacks.delete(id);
    try {
      timer.callback.apply(globalThis, timer.args);
    } catch (error) {
      const { name, message, stack } = describeError(error);
      host.log(3, `a timer callback threw ${name}: ${message}\n${stack ?? ""}`, undefined);
    }
  },
};

const define = (name, value) =>
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

// A global whose module is loaded when it is first touched.
const defineLazy = (name, module) =>
  Object.defineProperty(globalThis, name, {
    get() {
      const value = load(module)?.[name];
      if (value !== undefined) define(name, value);
      return value;
    },
    set(value) {
      define(name, value);
    },
    configurable: true,
    enumerable: false,
  });

function format(values) {
  return values.map((value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return value.stack ? `${value.name}: ${value.message}\n${value.stack}` : String(value);
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  }).join(" ");
}

// Time and chance come from the host of the call that runs, which can give the same again.
function installClock(h) {
  const Native = Date;
  const { construct } = Reflect;
  const { now, ticks, randomUnit } = h;
  const named = (name, length, value) => {
    Object.defineProperty(value, "name", { value: name, configurable: true });
    return Object.defineProperty(value, "length", { value: length, configurable: true });
  };
  const method = (object, name, value) =>
    Object.defineProperty(object, name, { value: named(name, 0, value), writable: true, configurable: true });
  const Clock = named("Date", 7, function (...args) {
    if (new.target === undefined) return new Native(now()).toString();
    return construct(Native, args.length === 0 ? [now()] : args, new.target);
  });
  for (const name of ["parse", "UTC"]) Object.defineProperty(Clock, name, Object.getOwnPropertyDescriptor(Native, name));
  method(Clock, "now", () => now());
  Object.defineProperty(Clock, "prototype", { value: Native.prototype, writable: false });
  Object.defineProperty(Native.prototype, "constructor", { value: Clock, writable: true, configurable: true });
  define("Date", Clock);
  method(Math, "random", () => randomUnit());
  define("performance", Object.freeze({ now: () => ticks(), timeOrigin: now() }));
}

export function installGlobals(h, loadModule) {
  host = h;
  load = loadModule;
  installClock(h);
  define("setTimeout", (callback, ms, ...args) => timers.set(callback, ms, false, args));
  define("setInterval", (callback, ms, ...args) => timers.set(callback, ms, true, args));
  define("setImmediate", (callback, ...args) => timers.set(callback, 0, false, args));
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) define(name, (id) => timers.clear(id));
  define("structuredClone", clone);
  define("atob", atob);
  define("btoa", btoa);
  define("Event", Event);
  define("EventTarget", EventTarget);
  define("AbortSignal", AbortSignal);
  define("AbortController", AbortController);
  const log = (level) => (...values) => h.log(level, format(values), undefined);
  define("console", {
    log: log(1), info: log(1), debug: log(0), trace: log(0), warn: log(2), error: log(3),
    assert: (condition, ...values) => void (condition || h.log(3, format(["Assertion failed", ...values]), undefined)),
    group() {}, groupEnd() {}, time() {}, timeEnd() {}, dir: log(1), table: log(1), count() {},
  });
  define("crypto", Object.freeze({
    randomUUID: () => h.randomUuid(),
    getRandomValues(array) {
      if (!/^(Big)?(Ui|I)nt/.test(ArrayBuffer.isView(array) ? array[Symbol.toStringTag] : "")) throw new DOMException("getRandomValues takes an integer typed array", "TypeMismatchError");
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      if (bytes.length > 65536) throw new DOMException("at most 65536 bytes at once", "QuotaExceededError");
      bytes.set(h.randomBytes(bytes.length));
      return array;
    },
  }));
  defineLazy("URL", "covel:url");
  defineLazy("URLSearchParams", "covel:url");
  defineLazy("TextEncoder", "covel:encoding");
  defineLazy("TextDecoder", "covel:encoding");
  defineLazy("Buffer", "covel:buffer");
  defineLazy("Intl", "covel:intl");
  installLocaleMethods(() => loadModule("covel:intl"));
  liveInUtc();
}
