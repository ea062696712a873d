import { dequal } from "dequal";

const { TextDecoder, TextEncoder } = globalThis;
export function inspect(value, options) {
  const limit = options?.depth ?? 2;
  const seen = new Set();
  const show = (v, depth) => {
    if (typeof v === "string") return depth === 0 ? `'${v}'` : `'${v.replaceAll("'", "\\'")}'`;
    if (typeof v === "bigint") return `${v}n`;
    if (typeof v === "symbol") return v.toString();
    if (typeof v === "function") return v.name ? `[Function: ${v.name}]` : "[Function (anonymous)]";
    if (v === null || typeof v !== "object") return Object.is(v, -0) ? "-0" : String(v);
    if (seen.has(v)) return "[Circular *1]";
    if (v instanceof Error) return v.stack ? `${v.name}: ${v.message}\n${v.stack}` : `[${v.name}: ${v.message}]`;
    if (v instanceof Date) return v.toISOString();
    if (v instanceof RegExp) return String(v);
    if (depth > limit) return Array.isArray(v) ? "[Array]" : "[Object]";
    seen.add(v);
    let out;
    if (Array.isArray(v)) out = v.length === 0 ? "[]" : `[ ${v.map((x) => show(x, depth + 1)).join(", ")} ]`;
    else if (v instanceof Map) out = `Map(${v.size}) { ${[...v].map(([k, x]) => `${show(k, depth + 1)} => ${show(x, depth + 1)}`).join(", ")} }`;
    else if (v instanceof Set) out = `Set(${v.size}) { ${[...v].map((x) => show(x, depth + 1)).join(", ")} }`;
    else {
      const entries = Object.entries(v).map(([k, x]) => `${/^[A-Za-z_$][\w$]*$/.test(k) ? k : `'${k}'`}: ${show(x, depth + 1)}`);
      out = entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
    }
    seen.delete(v);
    return out;
  };
  return show(value, 0);
}
export function format(first, ...rest) {
  if (typeof first === "string" && rest.length === 0) return first;
  let i = 0;
  let out = typeof first === "string" ? first.replace(/%[sdifjoOc%]/g, (code) => {
    if (code === "%%") return "%";
    if (i >= rest.length) return code;
    const value = rest[i++];
    switch (code) {
      case "%s": return typeof value === "string" ? value : typeof value === "object" ? inspect(value) : String(value);
      case "%d": return typeof value === "object" ? "NaN" : String(Number(value));
      case "%i": return String(Number.parseInt(value, 10));
      case "%f": return String(Number.parseFloat(value));
      case "%j": return JSON.stringify(value);
      case "%c": return "";
      default: return inspect(value);
    }
  }) : inspect(first);
  for (; i < rest.length; i++) out += ` ${typeof rest[i] === "string" ? rest[i] : inspect(rest[i])}`;
  return out;
}
export function promisify(fn) {
  return (...args) => new Promise((resolve, reject) => fn(...args, (error, value) => (error ? reject(error) : resolve(value))));
}
export function deprecate(fn) {
  return fn;
}
export function inherits(child, parent) {
  Object.setPrototypeOf(child.prototype, parent.prototype);
}
export const isDeepStrictEqual = (a, b) => dequal(a, b);
const tag = (name) => (value) => Object.prototype.toString.call(value) === `[object ${name}]`;
export const types = Object.freeze({
  isDate: (v) => v instanceof Date,
  isRegExp: (v) => v instanceof RegExp,
  isMap: (v) => v instanceof Map,
  isSet: (v) => v instanceof Set,
  isPromise: (v) => v instanceof Promise,
  isNativeError: (v) => v instanceof Error,
  isTypedArray: (v) => ArrayBuffer.isView(v) && !(v instanceof DataView),
  isUint8Array: (v) => v instanceof Uint8Array,
  isAsyncFunction: tag("AsyncFunction"),
  isGeneratorFunction: tag("GeneratorFunction"),
});
export { TextDecoder, TextEncoder };
export default { inspect, format, promisify, deprecate, inherits, isDeepStrictEqual, types, TextDecoder, TextEncoder };
