import { describe, expect, it } from "vitest";
import { expandView } from "./expand";
import { MAX_DEPTH, MAX_ITEMS, MAX_NODES } from "./limits";
import { keptEdits, panelState, sameData, withEdits } from "./state";
import { get } from "./pointer";

const names = (view: unknown, state: unknown) =>
  expandView(view, state, "en").roots.map((node) => node.props["content"]);

describe("expandView", () => {
  it("repeats over lists and records, with item, index and nested lists", () => {
    const state = {
      quests: [
        { title: "Lamp", steps: ["oil", "wick"] },
        { title: "Bell", steps: [] },
      ],
    };
    const view = {
      component: "Card",
      repeat: { statePath: "/quests", key: "title" },
      children: [
        { component: "Text", props: { content: { $concat: [{ $index: true }, " ", { $item: "title" }] } } },
        {
          component: "Text",
          repeat: { statePath: { $item: "steps" } },
          props: { content: { $item: "" } },
        },
      ],
    };
    const { roots, truncated } = expandView(view, state, "en");
    expect(truncated).toBe(false);
    expect(roots.map((card) => card.children.map((child) => child.props["content"]))).toEqual([
      ["0 Lamp", "oil", "wick"],
      ["1 Bell"],
    ]);
    const record = { component: "Text", repeat: { statePath: "/r" }, props: { content: { $item: "n" } } };
    expect(names(record, { r: { a: { n: 1 }, b: { n: 2 } } })).toEqual([1, 2]);
  });

  it("drops hidden nodes and keeps their siblings", () => {
    const view = [
      { component: "Text", visible: { $state: "/on" }, props: { content: "a" } },
      { component: "Text", props: { content: "b" } },
    ];
    expect(names(view, { on: false })).toEqual(["b"]);
  });

  it("gives siblings distinct keys even when data repeats an identity", () => {
    const view = { component: "Text", repeat: { statePath: "/l", key: "id" } };
    const keys = expandView(view, { l: [{ id: 1 }, { id: 1 }] }, "en").roots.map((node) => node.key);
    expect(new Set(keys).size).toBe(2);
  });

  it("stops at the depth, item and node limits and says so", () => {
    let deep: unknown = { component: "Text" };
    for (let level = 0; level < MAX_DEPTH * 4; level++) deep = { component: "Stack", children: [deep] };
    expect(expandView(deep, {}, "en").truncated).toBe(true);

    const many = expandView({ component: "Text", repeat: { statePath: "/l" } }, { l: Array(5_000).fill(0) }, "en");
    expect(many.roots).toHaveLength(MAX_ITEMS);
    expect(many.truncated).toBe(true);

    const nested = {
      component: "Stack",
      repeat: { statePath: "/l" },
      children: [{ component: "Stack", repeat: { statePath: "/l" }, children: [{ component: "Text" }] }],
    };
    const result = expandView(nested, { l: Array(150).fill(0) }, "en");
    expect(result.truncated).toBe(true);
    const size = (nodes: typeof result.roots): number => nodes.reduce((sum, node) => sum + 1 + size(node.children), 0);
    expect(size(result.roots)).toBeLessThanOrEqual(MAX_NODES);
  });

  it.each([null, 1, "text", [], [[[]]], { component: {} }, { children: "x" }, { props: [], slots: 3, on: 1 }])(
    "survives %j",
    (view) => {
      expect(() => expandView(view, null, "en")).not.toThrow();
    },
  );
});

describe("panel state", () => {
  it("offers records, entries and sources", () => {
    const state = panelState(new Map([["a", 1]]), new Map([["w", new Map([["sky", "fog"]])]]));
    expect(get(state, "/a")).toBe(1);
    expect(get(state, "/entries/0/key")).toBe("a");
    expect(get(state, "/sources/w/sky")).toBe("fog");
  });

  it("keeps an edit until the committed value under it changes", () => {
    const before = { filter: "all", other: 1 };
    const edits = new Map([["/filter", { value: "done", over: "all" }]]);
    expect(get(withEdits(before, edits), "/filter")).toBe("done");
    expect(keptEdits(edits, { ...before, other: 2 })).toBe(edits);
    expect(keptEdits(edits, { ...before, filter: "open" }).size).toBe(0);
  });

  it("treats data nested too deeply as changed instead of recursing", () => {
    const nest = () => {
      let value: unknown = 1;
      for (let level = 0; level < 10_000; level++) value = [value];
      return value;
    };
    expect(sameData(nest(), nest())).toBe(false);
  });
});
