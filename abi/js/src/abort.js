// EventTarget, AbortSignal and AbortController, as the DOM standard has them for code without a document.
import { timers } from "./globals.js";

export class Event {
  #type;
  #prevented = false;
  #stopped = false;
  target = null;
  currentTarget = null;
  constructor(type, options = {}) {
    if (arguments.length === 0) throw new TypeError("The \"type\" argument must be specified");
    this.#type = String(type);
    this.cancelable = Boolean(options?.cancelable);
    this.timeStamp = 0;
  }
  get type() {
    return this.#type;
  }
  get defaultPrevented() {
    return this.#prevented;
  }
  preventDefault() {
    if (this.cancelable) this.#prevented = true;
  }
  stopImmediatePropagation() {
    this.#stopped = true;
  }
  stopPropagation() {}
  static stopped(event) {
    return event.#stopped;
  }
  static is(value) {
    return typeof value === "object" && value !== null && #stopped in value;
  }
}

export class EventTarget {
  #listeners = new Map();
  addEventListener(type, callback, options) {
    if (callback === null || callback === undefined) return;
    const once = typeof options === "object" && options !== null && Boolean(options.once);
    const signal = typeof options === "object" && options !== null ? options.signal : undefined;
    if (signal?.aborted) return;
    const list = this.#listeners.get(type) ?? [];
    if (list.some((entry) => entry.callback === callback)) return;
    list.push({ callback, once });
    this.#listeners.set(type, list);
    signal?.addEventListener("abort", () => this.removeEventListener(type, callback), { once: true });
  }
  removeEventListener(type, callback) {
    const list = this.#listeners.get(type);
    if (list !== undefined) this.#listeners.set(type, list.filter((entry) => entry.callback !== callback));
  }
  dispatchEvent(event) {
    if (!Event.is(event)) throw new TypeError("The \"event\" argument must be an instance of Event");
    event.target = this;
    event.currentTarget = this;
    for (const entry of this.#listeners.get(event.type) ?? []) {
      if (Event.stopped(event)) break;
      if (entry.once) this.removeEventListener(event.type, entry.callback);
      try {
        if (typeof entry.callback === "function") entry.callback.call(this, event);
        else entry.callback.handleEvent(event);
      } catch (error) {
        // The standard reports it and goes on with the next listener.
        globalThis.console?.error("an event listener threw", error);
      }
    }
    return !event.defaultPrevented;
  }
}

// The kernel makes and fires signals; plugin code sees a signal as the standard has it.
const MAKE = Symbol("make");
let makeSignal;
let fireSignal;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #followers = new Set();
  onabort = null;
  constructor(key) {
    if (key !== MAKE) throw new TypeError("Illegal constructor: use new AbortController().signal");
    super();
  }
  get aborted() {
    return this.#aborted;
  }
  get reason() {
    return this.#reason;
  }
  get [Symbol.toStringTag]() {
    return "AbortSignal";
  }
  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }
  static abort(reason) {
    const signal = new AbortSignal(MAKE);
    fireSignal(signal, reason);
    return signal;
  }
  static timeout(milliseconds) {
    const ms = Number(milliseconds);
    if (!Number.isFinite(ms) || ms < 0) throw new RangeError("AbortSignal.timeout needs a non-negative finite number");
    const signal = new AbortSignal(MAKE);
    timers.set(() => fireSignal(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")), ms, false, []);
    return signal;
  }
  static any(signals) {
    const list = [...signals];
    for (const source of list) {
      if (!(source instanceof AbortSignal)) throw new TypeError("AbortSignal.any takes an iterable of AbortSignals");
    }
    const signal = new AbortSignal(MAKE);
    for (const source of list) {
      if (source.#aborted) {
        fireSignal(signal, source.#reason);
        return signal;
      }
    }
    for (const source of list) source.#followers.add(signal);
    return signal;
  }
  static {
    makeSignal = () => new AbortSignal(MAKE);
    fireSignal = (signal, reason) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
      const event = new Event("abort");
      event.target = event.currentTarget = signal;
      if (typeof signal.onabort === "function") {
        try {
          signal.onabort.call(signal, event);
        } catch (error) {
          globalThis.console?.error("onabort threw", error);
        }
      }
      signal.dispatchEvent(event);
      for (const follower of signal.#followers) fireSignal(follower, signal.#reason);
      signal.#followers.clear();
    };
  }
}
export { makeSignal, fireSignal };

export class AbortController {
  #signal = makeSignal();
  get signal() {
    return this.#signal;
  }
  get [Symbol.toStringTag]() {
    return "AbortController";
  }
  abort(reason) {
    fireSignal(this.#signal, reason);
  }
}
