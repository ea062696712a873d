import { describe, expect, it } from "vitest";
import { Budget, bindingTarget, evaluate, isVisible, type Scope } from "./expression";
import { MAX_EVALUATIONS, MAX_TEXT } from "./limits";
import { get, set } from "./pointer";

function scope(state: unknown, extra: Partial<Scope> = {}): Scope {
  return { state, locale: "en", budget: new Budget(), ...extra };
}

const run = (value: unknown, state: unknown = {}, extra: Partial<Scope> = {}) => evaluate(value, scope(state, extra));

describe("evaluate", () => {
  it.each([
    ["a literal", 3, {}, 3],
    ["a state value", { $state: "/hero/name" }, { hero: { name: "Wren" } }, "Wren"],
    ["an escaped pointer", { $state: "/a~1b/c~0d" }, { "a/b": { "c~d": 1 } }, 1],
    ["an array index", { $state: "/bag/1" }, { bag: ["rope", "lamp"] }, "lamp"],
    ["a missing value", { $state: "/none/at/all" }, {}, undefined],
    ["a path that is no text", { $state: { toString: 1 } }, {}, undefined],
    ["an inherited property", { $state: "/constructor/name" }, {}, undefined],
    ["concat", { $concat: ["HP ", { $state: "/hp" }, "/", 10] }, { hp: 7 }, "HP 7/10"],
    ["join with a separator", { $join: { $state: "/tags" }, separator: " · " }, { tags: ["a", "b"] }, "a · b"],
    ["count of a list", { $count: { $state: "/bag" } }, { bag: [1, 2, 3] }, 3],
    ["count of a record", { $count: { $state: "/bag" } }, { bag: { a: 1 } }, 1],
    ["count of nothing", { $count: { $state: "/bag" } }, {}, 0],
    ["truncate by characters", { $truncate: "灯塔之歌", length: 2 }, {}, "灯塔…"],
    ["truncate of a short text", { $truncate: "abc", length: 5 }, {}, "abc"],
    ["number format", { $format: "number", value: 12345.5 }, {}, "12,345.5"],
    ["percent format", { $format: "percent", value: 0.256 }, {}, "25.6%"],
    ["currency format", { $format: "currency", value: 3, currency: "EUR" }, {}, "€3.00"],
    ["format of no number", { $format: "number", value: "many" }, {}, "many"],
    ["format with options nobody knows", { $format: "number", value: 1, options: { style: "x" } }, {}, "1"],
    ["math", { $math: "sub", a: { $state: "/hp" }, b: 2 }, { hp: 7 }, 5],
    ["division by zero", { $math: "div", a: 1, b: 0 }, {}, undefined],
    ["plural forms", { $pluralize: 2, one: "coin", other: "coins" }, {}, "2 coins"],
  ])("%s", (_, value, state, expected) => {
    expect(run(value, state)).toEqual(expected);
  });

  it("reads the item and the index of a repeat", () => {
    const extra = { item: { npc: { name: "Ada" } }, index: 4 };
    expect(run({ $item: "npc.name" }, {}, extra)).toBe("Ada");
    expect(run({ $item: "" }, {}, extra)).toEqual(extra.item);
    expect(run({ $index: true }, {}, extra)).toBe(4);
  });

  it("maps objects and lists, keeping hostile keys as data", () => {
    const value: unknown = JSON.parse('{"__proto__": {"$state": "/x"}, "list": [{"$state": "/x"}]}');
    const result = run(value, { x: 1 }) as Record<string, unknown>;
    expect(Object.keys(result)).toEqual(["__proto__", "list"]);
    expect(result["list"]).toEqual([1]);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  it("ends on deep nesting, on much work and on long text", () => {
    let deep: unknown = "x";
    for (let level = 0; level < 200; level++) deep = { $concat: [deep] };
    expect(run(deep)).toBe("");

    let wide: unknown = { $state: "/x" };
    for (let level = 0; level < 5; level++) wide = Array.from({ length: 100 }, () => wide);
    const limited = scope({ x: 1 });
    evaluate(wide, limited);
    expect(limited.budget.exceeded).toBe(true);
    expect(limited.budget.evaluations).toBeLessThan(MAX_EVALUATIONS + 1_000_000);

    expect((run("x".repeat(MAX_TEXT * 2)) as string).length).toBe(MAX_TEXT + 1);
  });
});

describe("isVisible", () => {
  const state = { hp: 0, name: "Wren", list: [] as string[], quest: { done: true } };
  it.each([
    [undefined, true],
    [false, false],
    [{ $state: "/quest/done" }, true],
    [{ $state: "/quest/done", not: true }, false],
    [{ $state: "/list" }, false],
    [{ $state: "/hp", eq: 0 }, true],
    [{ $state: "/hp", neq: 0 }, false],
    [{ $state: "/hp", gte: 0, lt: 1 }, true],
    [{ $state: "/name", gt: 1 }, false],
    [{ $state: "/missing", eq: null }, true],
    [[{ $state: "/name" }, { $state: "/hp", eq: 1 }], false],
    [{ $or: [{ $state: "/hp" }, { $state: "/name" }] }, true],
    [{ $and: [{ $state: "/hp" }, { $state: "/name" }] }, false],
    [{ $not: { $state: "/hp" } }, true],
    [{ $state: "/name", eq: { $concat: ["W", "ren"] } }, true],
  ])("%j is %s", (condition, expected) => {
    expect(isVisible(condition, scope(state))).toBe(expected);
  });

  it("compares the index", () => {
    expect(isVisible({ $index: true, eq: 0 }, scope({}, { index: 0 }))).toBe(true);
  });
});

describe("two-way bindings", () => {
  it("names the state path that an edit writes to", () => {
    expect(bindingTarget({ $bindState: "/filter" }, scope({}))).toBe("/filter");
    expect(bindingTarget({ $bindItem: "done" }, scope({}, { itemPointer: "/quests/2" }))).toBe("/quests/2/done");
    expect(bindingTarget({ $bindItem: "done" }, scope({}))).toBeUndefined();
    expect(bindingTarget({ $state: "/filter" }, scope({}))).toBeUndefined();
  });

  it("writes copies, never prototypes or sparse arrays", () => {
    const before = { a: { b: [1, 2] } };
    const after = set(before, "/a/b/1", 9);
    expect(get(after, "/a/b/1")).toBe(9);
    expect(before.a.b[1]).toBe(2);
    set(before, "/__proto__/polluted", true);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(set([1], "/4000000000", 1)).toEqual([1]);
  });
});
