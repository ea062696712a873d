import { MAX_COMPARE_DEPTH } from "./limits";
import { dict, get, set, type Dict } from "./pointer";

/** Records of one namespace, by key. */
export type Records = ReadonlyMap<string, unknown>;

/**
 * The state a panel's expressions see: record keys at the root, `/entries` as a list of `{key, value}`, `/sources/<name>` for
 * further namespaces, `/_invoking` for running actions.
 */
export function panelState(records: Records, sources: ReadonlyMap<string, Records>): Dict {
  const state = dict(records);
  state["entries"] = Array.from(records, ([key, value]) => ({ key, value }));
  state["sources"] = dict(Array.from(sources, ([name, entries]) => [name, dict(entries)] as const));
  state["_invoking"] = dict();
  return state;
}

/** Edits made in a panel's inputs, by state path, each with the committed value it was made over. */
export type Edits = ReadonlyMap<string, { value: unknown; over: unknown }>;

export function withEdits(base: unknown, edits: Edits): unknown {
  let state = base;
  for (const [path, edit] of edits) state = set(state, path, edit.value);
  return state;
}

/** Edits that survive new data: those whose committed value did not change meanwhile. */
export function keptEdits(edits: Edits, base: unknown): Edits {
  const kept = new Map([...edits].filter(([path, edit]) => sameData(get(base, path), edit.over)));
  return kept.size === edits.size ? edits : kept;
}

/** Structural equality of plain data, to a bounded depth. */
export function sameData(a: unknown, b: unknown, depth = 0): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (depth >= MAX_COMPARE_DEPTH || Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.keys(a);
  const right = Object.keys(b);
  if (left.length !== right.length) return false;
  return left.every((key) => Object.hasOwn(b, key) && sameData((a as Dict)[key], (b as Dict)[key], depth + 1));
}
