import { dequal } from "dequal";

export class AssertionError extends Error {
  constructor({ message, actual, expected, operator }) {
    super(message);
    this.name = "AssertionError";
    this.code = "ERR_ASSERTION";
    Object.assign(this, { actual, expected, operator, generatedMessage: false });
  }
}
function show(value) {
  if (typeof value === "string") return JSON.stringify(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
function fail(message, actual, expected, operator, fallback) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message: message ?? fallback, actual, expected, operator });
}
export function ok(value, message) {
  if (!value) fail(message, value, true, "==", `expected a truthy value, got ${show(value)}`);
}
export default function assert(value, message) {
  ok(value, message);
}
export function strictEqual(actual, expected, message) {
  if (!Object.is(actual, expected)) fail(message, actual, expected, "strictEqual", `expected ${show(expected)}, got ${show(actual)}`);
}
export function notStrictEqual(actual, expected, message) {
  if (Object.is(actual, expected)) fail(message, actual, expected, "notStrictEqual", `expected something other than ${show(expected)}`);
}
export function equal(actual, expected, message) {
  // Loose on purpose: this is the legacy comparison.
  if (!(actual == expected || (Number.isNaN(actual) && Number.isNaN(expected)))) fail(message, actual, expected, "==", `expected ${show(expected)}, got ${show(actual)}`);
}
export function notEqual(actual, expected, message) {
  if (actual == expected) fail(message, actual, expected, "!=", `expected something other than ${show(expected)}`);
}
export function deepStrictEqual(actual, expected, message) {
  if (!dequal(actual, expected)) fail(message, actual, expected, "deepStrictEqual", `expected ${show(expected)}, got ${show(actual)}`);
}
export function notDeepStrictEqual(actual, expected, message) {
  if (dequal(actual, expected)) fail(message, actual, expected, "notDeepStrictEqual", `expected something other than ${show(expected)}`);
}
export { deepStrictEqual as deepEqual, notDeepStrictEqual as notDeepEqual };
function matches(error, expected) {
  if (expected === undefined) return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return true;
    return !Error.isPrototypeOf(expected) && expected(error) === true;
  }
  return Object.entries(expected).every(([key, value]) =>
    value instanceof RegExp && typeof error?.[key] === "string" ? value.test(error[key]) : dequal(error?.[key], value));
}
export function throws(fn, expected, message) {
  let thrown;
  try {
    fn();
  } catch (error) {
    thrown = { error };
  }
  if (thrown === undefined) fail(typeof expected === "string" ? expected : message, undefined, expected, "throws", "expected an exception");
  else if (typeof expected !== "string" && !matches(thrown.error, expected)) throw thrown.error;
}
export async function rejects(promise, expected, message) {
  let thrown;
  try {
    await (typeof promise === "function" ? promise() : promise);
  } catch (error) {
    thrown = { error };
  }
  if (thrown === undefined) fail(typeof expected === "string" ? expected : message, undefined, expected, "rejects", "expected a rejection");
  else if (typeof expected !== "string" && !matches(thrown.error, expected)) throw thrown.error;
}
export function match(text, pattern, message) {
  if (typeof text !== "string" || !pattern.test(text)) fail(message, text, pattern, "match", `${show(text)} does not match ${pattern}`);
}
function explicitFail(message = "Failed") {
  fail(message, undefined, undefined, "fail", message);
}
export { explicitFail as fail };
Object.assign(assert, {
  AssertionError, ok, equal, notEqual, strictEqual, notStrictEqual, deepEqual: deepStrictEqual, deepStrictEqual,
  notDeepEqual: notDeepStrictEqual, notDeepStrictEqual, throws, rejects, match, fail: explicitFail, strict: assert,
});
export { assert as strict };
