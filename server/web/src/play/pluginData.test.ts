import { describe, expect, it } from "vitest";
import type { UiSpecs } from "../api/types";
import { applyChanges, dataKey, fromItems, needsRead, readChanges, usedNamespaces } from "./pluginData";

const specs = (right: UiSpecs["right"]): UiSpecs => ({ right, left: [], message: [], diagnostics: [] });

describe("plugin data", () => {
  it("is read only for the namespaces that panels show, each once", () => {
    const spec = { dataSource: { namespace: "quests", bindings: { sky: "weather", again: "quests", bad: 1 } } };
    expect(usedNamespaces(specs([{ pluginId: "q", specs: [spec, spec, null, "x", { dataSource: [] }] }]))).toEqual([
      { pluginId: "q", namespace: "quests" },
      { pluginId: "q", namespace: "weather" },
    ]);
  });

  it("follows sets and deletes without touching the old state", () => {
    const before = new Map([[dataKey("q", "quests"), fromItems([{ key: "a", value: 1 }])]]);
    const after = applyChanges(before, "q", [
      { namespace: "quests", key: "a", operation: "delete" },
      { namespace: "quests", key: "__proto__", value: { x: 1 }, operation: "set" },
      { namespace: "unseen", key: "b", value: 2, operation: "set" },
    ]);
    expect([...(after.get(dataKey("q", "quests")) ?? [])]).toEqual([["__proto__", { x: 1 }]]);
    expect(after.has(dataKey("q", "unseen"))).toBe(false);
    expect(before.get(dataKey("q", "quests"))?.get("a")).toBe(1);
  });

  it("asks for a new read when an event leaves the value out", () => {
    expect(needsRead({ namespace: "n", key: "k", operation: "set" })).toBe(true);
    expect(needsRead({ namespace: "n", key: "k", operation: "set", value: null })).toBe(false);
    expect(needsRead({ namespace: "n", key: "k", operation: "delete" })).toBe(false);
  });

  it("drops changes of a wrong shape", () => {
    const good = { namespace: "n", key: "k", value: 1, operation: "set" };
    expect(readChanges({ changes: [good, null, { namespace: 1 }, { ...good, operation: "burn" }] })).toEqual([good]);
    expect(readChanges({ changes: "all" })).toEqual([]);
  });
});
