/** JSON Pointers over plain data. Only own properties are seen, so `__proto__` and `constructor` are ordinary (absent) keys. */

export type Dict = Record<string, unknown>;

export function isDict(value: unknown): value is Dict {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object without a prototype: any key can be stored in it. */
export function dict(entries: Iterable<readonly [string, unknown]> = []): Dict {
  const out = Object.create(null) as Dict;
  for (const [key, value] of entries) out[key] = value;
  return out;
}

export function own(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^(0|[1-9]\d*)$/.test(key) ? value[Number(key)] : undefined;
  if (isDict(value)) return Object.hasOwn(value, key) ? value[key] : undefined;
  return undefined;
}

export function tokens(pointer: string): string[] {
  if (pointer === "" || pointer === "/") return [];
  const body = pointer.startsWith("/") ? pointer.slice(1) : pointer;
  return body.split("/").map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function pointer(path: readonly (string | number)[]): string {
  return path.map((token) => "/" + String(token).replaceAll("~", "~0").replaceAll("/", "~1")).join("");
}

export function get(root: unknown, path: string): unknown {
  let value: unknown = root;
  for (const token of tokens(path)) value = own(value, token);
  return value;
}

/** A copy of `root` with one value replaced; missing objects on the way are made. */
export function set(root: unknown, path: string, value: unknown): unknown {
  return setAt(root, tokens(path), 0, value);
}

function setAt(current: unknown, path: string[], at: number, value: unknown): unknown {
  const token = path[at];
  if (token === undefined) return value;
  if (Array.isArray(current)) {
    const index = Number(token);
    // A write far past the end would make a huge sparse array.
    if (!Number.isInteger(index) || index < 0 || index > current.length) return current;
    const copy: unknown[] = current.slice();
    copy[index] = setAt(copy[index], path, at + 1, value);
    return copy;
  }
  const copy = dict(isDict(current) ? Object.entries(current) : []);
  copy[token] = setAt(copy[token], path, at + 1, value);
  return copy;
}

/** A field by dot path (`npc.name`), as list components name their fields. */
export function field(value: unknown, path: unknown): unknown {
  if (typeof path !== "string" || path === "") return undefined;
  let current = value;
  for (const token of path.split(".")) current = own(current, token);
  return current;
}
