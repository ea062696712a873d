import type { PluginDataChange, PluginDataItem, UiSpecs } from "../api/types";
import { isDict, own } from "../view/pointer";
import type { Records } from "../view/state";

/** Plugin data of one session, by plugin and namespace. Immutable. */
export type PluginData = ReadonlyMap<string, Records>;

const NAMESPACES_A_PANEL = 9;

export const dataKey = (pluginId: string, namespace: string): string => `${pluginId}\u0000${namespace}`;

export interface NamespaceRef {
  pluginId: string;
  namespace: string;
}

export function fromItems(items: readonly PluginDataItem[]): Records {
  return new Map(items.map((item) => [item.key, item.value]));
}

/** Whether a change lacks the value it announces, so that the namespace must be read again. */
export function needsRead(change: PluginDataChange): boolean {
  return change.operation === "set" && change.value === undefined;
}

/** The data after a change event. Namespaces that no panel shows are not kept. */
export function applyChanges(data: PluginData, pluginId: string, changes: readonly PluginDataChange[]): PluginData {
  const next = new Map(data);
  for (const change of changes) {
    const key = dataKey(pluginId, change.namespace);
    const before = next.get(key);
    if (!before || needsRead(change)) continue;
    const records = new Map(before);
    if (change.operation === "delete") records.delete(change.key);
    else records.set(change.key, change.value);
    next.set(key, records);
  }
  return next;
}

/** Changes of an event payload that have the right shape. */
export function readChanges(payload: Record<string, unknown>): PluginDataChange[] {
  const changes = payload["changes"];
  if (!Array.isArray(changes)) return [];
  return changes.filter(
    (change): change is PluginDataChange =>
      isDict(change) &&
      typeof change["namespace"] === "string" &&
      typeof change["key"] === "string" &&
      (change["operation"] === "set" || change["operation"] === "delete"),
  );
}

/** Namespaces that a spec reads: its data source and the bindings beside it, all of the owning plugin. */
export function specNamespaces(spec: unknown): {
  main: string | undefined;
  bindings: [name: string, namespace: string][];
} {
  const source = own(spec, "dataSource");
  const main = own(source, "namespace");
  const bindings = own(source, "bindings");
  return {
    main: typeof main === "string" ? main : undefined,
    bindings: isDict(bindings)
      ? Object.entries(bindings)
          .filter((entry): entry is [string, string] => typeof entry[1] === "string")
          .slice(0, NAMESPACES_A_PANEL - 1)
      : [],
  };
}

export function usedNamespaces(specs: UiSpecs): NamespaceRef[] {
  const refs = new Map<string, NamespaceRef>();
  for (const entry of [...specs.left, ...specs.right, ...specs.message]) {
    for (const spec of entry.specs) {
      const { main, bindings } = specNamespaces(spec);
      for (const namespace of [...(main === undefined ? [] : [main]), ...bindings.map(([, name]) => name)]) {
        refs.set(dataKey(entry.pluginId, namespace), { pluginId: entry.pluginId, namespace });
      }
    }
  }
  return [...refs.values()];
}
