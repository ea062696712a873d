// structuredClone, as the HTML standard has it, for the types an isolate knows.

const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

function refuse(value) {
  let shown = typeof value;
  try {
    shown = typeof value === "object" ? `#<${tagOf(value)}>` : String(value);
  } catch {}
  throw new DOMException(`${shown.slice(0, 200)} could not be cloned.`, "DataCloneError");
}

function copy(value, seen) {
  if (value === null || (typeof value !== "object" && typeof value !== "function" && typeof value !== "symbol")) return value;
  if (typeof value !== "object") refuse(value);
  const known = seen.get(value);
  if (known !== undefined) return known;
  const keep = (made) => {
    seen.set(value, made);
    return made;
  };
  if (ArrayBuffer.isView(value)) {
    const buffer = copy(value.buffer, seen);
    const tag = value instanceof DataView ? "DataView" : value[Symbol.toStringTag];
    return keep(new globalThis[tag](buffer, value.byteOffset, tag === "DataView" ? value.byteLength : value.length));
  }
  if (Array.isArray(value)) {
    const out = keep(new Array(value.length));
    for (const key of Object.keys(value)) out[key] = copy(value[key], seen);
    return out;
  }
  const tag = tagOf(value);
  switch (tag) {
    case "Date": return keep(new Date(Date.prototype.getTime.call(value)));
    case "RegExp": return keep(new RegExp(value.source, value.flags));
    case "Boolean": return keep(Object(Boolean.prototype.valueOf.call(value)));
    case "Number": return keep(Object(Number.prototype.valueOf.call(value)));
    case "String": return keep(Object(String.prototype.valueOf.call(value)));
    case "BigInt": return keep(Object(BigInt.prototype.valueOf.call(value)));
    case "ArrayBuffer": return keep(ArrayBuffer.prototype.slice.call(value, 0));
    case "Map": {
      const out = keep(new Map());
      for (const [key, member] of [...Map.prototype.entries.call(value)]) out.set(copy(key, seen), copy(member, seen));
      return out;
    }
    case "Set": {
      const out = keep(new Set());
      for (const member of [...Set.prototype.values.call(value)]) out.add(copy(member, seen));
      return out;
    }
    case "DOMException": return keep(new DOMException(value.message, value.name));
    case "Error": {
      const name = String(value.name);
      const type = Object.hasOwn(ERRORS, name) ? ERRORS[name] : Error;
      const made = keep(Object.hasOwn(value, "message") ? new type(String(value.message)) : new type());
      if (typeof value.stack === "string") Object.defineProperty(made, "stack", { value: value.stack, writable: true, configurable: true, enumerable: false });
      if (Object.hasOwn(value, "cause")) Object.defineProperty(made, "cause", { value: copy(value.cause, seen), writable: true, configurable: true, enumerable: false });
      return made;
    }
    case "Symbol": case "Promise": case "WeakMap": case "WeakSet": case "WeakRef": case "Arguments": case "Generator": case "AsyncGenerator":
      return refuse(value);
    default: {
      const out = keep({});
      for (const key of Object.keys(value)) {
        Object.defineProperty(out, key, { value: copy(value[key], seen), writable: true, enumerable: true, configurable: true });
      }
      return out;
    }
  }
}

export function clone(value, options) {
  if (arguments.length === 0) throw new TypeError("The \"value\" argument must be specified");
  const seen = new Map();
  const moved = [...(options?.transfer ?? [])];
  for (const buffer of moved) {
    if (!(buffer instanceof ArrayBuffer)) throw new TypeError("Found invalid object in transferList");
  }
  const out = copy(value, seen);
  // What could not be cloned leaves the buffers where they were.
  for (const buffer of moved) buffer.transfer();
  return out;
}
