import { MAX_EVALUATIONS, MAX_EXPRESSION_DEPTH, MAX_ITEMS, MAX_TEXT } from "./limits";
import { dict, get, isDict, own, pointer, tokens, type Dict } from "./pointer";

/** What an expression can see. `item` and `index` are those of the nearest `repeat`. */
export interface Scope {
  state: unknown;
  item?: unknown;
  index?: number;
  /** Where the item sits in the state, for two-way bindings. */
  itemPointer?: string;
  locale: string;
  budget: Budget;
}

/** Counts the work of one expansion; shared by all its expressions. */
export class Budget {
  evaluations = 0;
  nodes = 0;
  exceeded = false;

  step(): boolean {
    if (++this.evaluations > MAX_EVALUATIONS) this.exceeded = true;
    return !this.exceeded;
  }
}

type Directive = (value: Dict, scope: Scope, depth: number) => unknown;

const DIRECTIVES: Record<string, Directive> = {
  $state: (value, scope) => stateValue(scope, value["$state"]),
  $bindState: (value, scope) => stateValue(scope, value["$bindState"]),
  $item: (value, scope) => itemField(scope, value["$item"]),
  $bindItem: (value, scope) => itemField(scope, value["$bindItem"]),
  $index: (_, scope) => scope.index,
  $concat: (value, scope, depth) => clip(list(value["$concat"], scope, depth).map(asText).join("")),
  $join: (value, scope, depth) => {
    const separator = "separator" in value ? asText(evaluate(value["separator"], scope, depth)) : ", ";
    return clip(list(value["$join"], scope, depth).map(asText).join(separator));
  },
  $count: (value, scope, depth) => count(evaluate(value["$count"], scope, depth)),
  $truncate: (value, scope, depth) => {
    const text = asText(evaluate(value["$truncate"], scope, depth));
    const length = number(evaluate(value["length"] ?? 100, scope, depth)) ?? 100;
    const suffix = "suffix" in value ? asText(evaluate(value["suffix"], scope, depth)) : "…";
    const characters = Array.from(text);
    return characters.length <= length ? text : characters.slice(0, Math.max(0, length)).join("") + suffix;
  },
  $pluralize: (value, scope, depth) => {
    const n = count(evaluate(value["$pluralize"], scope, depth));
    const form = n === 0 && "zero" in value ? "zero" : n === 1 && "one" in value ? "one" : "other";
    const word = asText(evaluate(value[form], scope, depth));
    return word.includes("{count}") ? word.replaceAll("{count}", String(n)) : form === "zero" ? word : `${n} ${word}`;
  },
  $format: format,
  $math: math,
};

const NAMES = Object.keys(DIRECTIVES);

/** The value of a literal or an expression. Never throws; what cannot be computed is `undefined`. */
export function evaluate(value: unknown, scope: Scope, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return typeof value === "string" ? clip(value) : value;
  if (depth > MAX_EXPRESSION_DEPTH || !scope.budget.step()) return undefined;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((entry) => evaluate(entry, scope, depth + 1));
  const object = value as Dict;
  const name = NAMES.find((candidate) => Object.hasOwn(object, candidate));
  if (name) return DIRECTIVES[name]?.(object, scope, depth + 1);
  return dict(
    Object.entries(object)
      .slice(0, MAX_ITEMS)
      .map(([key, entry]) => [key, evaluate(entry, scope, depth + 1)] as const),
  );
}

/** The state path that a two-way binding writes to, if `value` is one. */
export function bindingTarget(value: unknown, scope: Scope): string | undefined {
  if (!isDict(value)) return undefined;
  const state = value["$bindState"];
  if (typeof state === "string") return pointer(tokens(state));
  const item = value["$bindItem"];
  if (typeof item === "string" && scope.itemPointer !== undefined) {
    return scope.itemPointer + pointer(itemTokens(item));
  }
  return undefined;
}

/**
 * Whether a node is shown. A condition is a boolean, an expression (its truth), an expression with comparisons
 * (`eq neq gt gte lt lte`, `not: true` inverts), a list (all must hold), or `$and`, `$or`, `$not`.
 */
export function isVisible(condition: unknown, scope: Scope, depth = 0): boolean {
  if (condition === undefined || condition === null) return true;
  if (typeof condition === "boolean") return condition;
  if (depth > MAX_EXPRESSION_DEPTH || !scope.budget.step()) return false;
  const all = (entries: unknown) =>
    Array.isArray(entries) && entries.every((entry) => isVisible(entry, scope, depth + 1));
  if (Array.isArray(condition)) return all(condition);
  if (!isDict(condition)) return Boolean(condition);
  if ("$and" in condition) return all(condition["$and"]);
  if ("$or" in condition) {
    const any = condition["$or"];
    return Array.isArray(any) && any.some((entry) => isVisible(entry, scope, depth + 1));
  }
  if ("$not" in condition) return !isVisible(condition["$not"], scope, depth + 1);
  const left = evaluate(condition, scope, depth + 1);
  const operand = (name: string) => evaluate(condition[name], scope, depth + 1);
  const compare = (name: string, holds: (a: number, b: number) => boolean) => {
    const a = number(left);
    const b = number(operand(name));
    return a !== undefined && b !== undefined && holds(a, b);
  };
  let result = true;
  let compared = false;
  const test = (name: string, holds: () => boolean) => {
    if (!Object.hasOwn(condition, name)) return;
    compared = true;
    result &&= holds();
  };
  test("eq", () => sameScalar(left, operand("eq")));
  test("neq", () => !sameScalar(left, operand("neq")));
  test("gt", () => compare("gt", (a, b) => a > b));
  test("gte", () => compare("gte", (a, b) => a >= b));
  test("lt", () => compare("lt", (a, b) => a < b));
  test("lte", () => compare("lte", (a, b) => a <= b));
  if (!compared) result = truthy(left);
  return condition["not"] === true ? !result : result;
}

function truthy(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

function sameScalar(a: unknown, b: unknown): boolean {
  return a === b || ((a === undefined || a === null) && (b === undefined || b === null));
}

function stateValue(scope: Scope, path: unknown): unknown {
  return typeof path === "string" ? get(scope.state, path) : undefined;
}

function itemTokens(path: string): string[] {
  if (path === "") return [];
  return path.startsWith("/") ? tokens(path) : path.split(/[./]/);
}

function itemField(scope: Scope, path: unknown): unknown {
  let value = scope.item;
  if (typeof path !== "string") return value;
  for (const token of itemTokens(path)) value = own(value, token);
  return value;
}

function list(value: unknown, scope: Scope, depth: number): unknown[] {
  const result = evaluate(value, scope, depth);
  if (Array.isArray(result)) return result.slice(0, MAX_ITEMS);
  if (isDict(result)) return Object.values(result).slice(0, MAX_ITEMS);
  return result === undefined || result === null ? [] : [result];
}

function count(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  if (isDict(value)) return Object.keys(value).length;
  if (typeof value === "string") return Array.from(value).length;
  return number(value) ?? 0;
}

export function number(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const parsed = Number(value);
  return Number.isFinite(parsed) ? parsed : undefined;
}

function clip(text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + "…" : text;
}

/** Any value as text a reader can be shown; objects become compact JSON. */
export function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return clip(value);
  if (typeof value === "object") {
    try {
      return clip(JSON.stringify(value));
    } catch {
      return "";
    }
  }
  return String(value);
}

function format(value: Dict, scope: Scope, depth: number): unknown {
  const input = evaluate(value["value"], scope, depth);
  const options: Record<string, unknown> = { ...(isDict(value["options"]) ? value["options"] : {}) };
  for (const name of ["minimumFractionDigits", "maximumFractionDigits", "notation", "dateStyle", "timeStyle"]) {
    if (Object.hasOwn(value, name)) options[name] = value[name];
  }
  try {
    if (value["$format"] === "date") {
      const date = new Date(typeof input === "number" ? input : String(input));
      if (Number.isNaN(date.getTime())) return asText(input);
      const chosen = Object.keys(options).length > 0 ? options : { dateStyle: "medium" };
      return new Intl.DateTimeFormat(scope.locale, chosen).format(date);
    }
    const n = number(input);
    if (n === undefined) return asText(input);
    if (value["$format"] === "currency") {
      const currency = typeof value["currency"] === "string" ? value["currency"] : "USD";
      return new Intl.NumberFormat(scope.locale, { ...options, style: "currency", currency }).format(n);
    }
    if (value["$format"] === "percent") {
      return new Intl.NumberFormat(scope.locale, { maximumFractionDigits: 1, ...options, style: "percent" }).format(n);
    }
    return new Intl.NumberFormat(scope.locale, options).format(n);
  } catch {
    // `Intl` throws on option values that it does not know.
    return asText(input);
  }
}

function math(value: Dict, scope: Scope, depth: number): unknown {
  const operands = ("a" in value ? [value["a"], value["b"]] : list(value["values"] ?? value["args"], scope, depth)).map(
    (operand) => number(evaluate(operand, scope, depth)),
  );
  const [a, b] = operands;
  if (a === undefined) return undefined;
  const known = operands.filter((operand) => operand !== undefined);
  const result = (() => {
    switch (value["$math"]) {
      case "add":
        return known.reduce((sum, operand) => sum + operand, 0);
      case "sub":
      case "subtract":
        return b === undefined ? -a : a - b;
      case "mul":
      case "multiply":
        return known.reduce((product, operand) => product * operand, 1);
      case "div":
      case "divide":
        return b === undefined || b === 0 ? undefined : a / b;
      case "mod":
        return b === undefined || b === 0 ? undefined : a % b;
      case "min":
        return Math.min(...known);
      case "max":
        return Math.max(...known);
      case "round":
        return Math.round(a);
      case "floor":
        return Math.floor(a);
      case "ceil":
        return Math.ceil(a);
      case "abs":
        return Math.abs(a);
      default:
        return undefined;
    }
  })();
  return number(result);
}
