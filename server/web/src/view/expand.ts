import { MAX_DEPTH, MAX_ITEMS, MAX_NODES } from "./limits";
import { Budget, bindingTarget, evaluate, isVisible, type Scope } from "./expression";
import { dict, field, get, isDict, own, pointer, tokens, type Dict } from "./pointer";

/** A node whose expressions are evaluated, repeats unrolled and hidden parts removed: what the components draw. */
export interface ViewNode {
  key: string;
  component: string;
  props: Dict;
  children: ViewNode[];
  slots: Dict;
  /** Property name -> state path that edits of it write to. */
  bind: Record<string, string>;
  on: Dict;
  /** The scope that the node's actions are evaluated in, when they run. */
  scope: Scope;
}

export interface Expansion {
  roots: ViewNode[];
  /** A limit was reached and parts are missing. */
  truncated: boolean;
}

/** Expands a view (one node or a list) against a state. Pure, bounded, never throws on hostile input. */
export function expandView(view: unknown, state: unknown, locale: string): Expansion {
  const budget = new Budget();
  const scope: Scope = { state, locale, budget };
  const roots = expandList(Array.isArray(view) ? view : [view], scope, "", 0);
  return { roots, truncated: budget.exceeded };
}

function expandList(nodes: unknown, scope: Scope, key: string, depth: number): ViewNode[] {
  if (!Array.isArray(nodes)) return [];
  const out: ViewNode[] = [];
  for (const [index, node] of nodes.entries()) {
    if (scope.budget.nodes >= MAX_NODES) {
      scope.budget.exceeded = true;
      break;
    }
    expandNode(node, scope, `${key}/${index}`, depth, out);
  }
  return out;
}

function expandNode(node: unknown, scope: Scope, key: string, depth: number, out: ViewNode[]): void {
  if (typeof node === "string" || typeof node === "number") {
    if (!countNode(scope.budget)) return;
    out.push(leaf(key, "Text", dict([["content", String(node)]]), scope));
    return;
  }
  if (!isDict(node)) return;
  if (depth > MAX_DEPTH) {
    scope.budget.exceeded = true;
    return;
  }
  const repeat = own(node, "repeat");
  if (isDict(repeat)) {
    expandRepeat(node, repeat, scope, key, depth, out);
    return;
  }
  expandOne(node, scope, key, depth, out);
}

function expandRepeat(node: Dict, repeat: Dict, scope: Scope, key: string, depth: number, out: ViewNode[]): void {
  const { path, source } = repeatSource(repeat["statePath"], scope);
  const entries: [string | number, unknown][] = Array.isArray(source)
    ? source.map((item, index) => [index, item])
    : isDict(source)
      ? Object.entries(source)
      : [];
  if (entries.length > MAX_ITEMS) scope.budget.exceeded = true;
  for (const [index, [name, item]] of entries.slice(0, MAX_ITEMS).entries()) {
    if (scope.budget.nodes >= MAX_NODES) {
      scope.budget.exceeded = true;
      return;
    }
    const identity = field(item, repeat["key"]);
    const itemKey = typeof identity === "string" || typeof identity === "number" ? identity : name;
    const inner: Scope = {
      ...scope,
      item,
      index,
      ...(path === undefined ? {} : { itemPointer: path + pointer([name]) }),
    };
    // The position is part of the key: hostile data may repeat an identity.
    expandOne(node, inner, `${key}[${index}:${itemKey}]`, depth, out);
  }
}

function repeatSource(statePath: unknown, scope: Scope): { path: string | undefined; source: unknown } {
  if (typeof statePath === "string") {
    return { path: pointer(tokens(statePath)), source: get(scope.state, statePath) };
  }
  if (isDict(statePath) && typeof statePath["$item"] === "string") {
    const target = bindingTarget({ $bindItem: statePath["$item"] }, scope);
    return { path: target, source: evaluate({ $item: statePath["$item"] }, scope) };
  }
  return { path: undefined, source: undefined };
}

function expandOne(node: Dict, scope: Scope, key: string, depth: number, out: ViewNode[]): void {
  if (!isVisible(own(node, "visible"), scope)) return;
  if (!countNode(scope.budget)) return;
  const name = own(node, "component") ?? own(node, "type");
  const props = dict();
  const bind = Object.create(null) as Record<string, string>;
  const written = own(node, "props");
  if (isDict(written)) {
    for (const [prop, value] of Object.entries(written)) {
      props[prop] = evaluate(value, scope);
      const target = bindingTarget(value, scope);
      if (target !== undefined) bind[prop] = target;
    }
  }
  const slots = dict();
  const slotNodes = own(node, "slots");
  if (isDict(slotNodes)) {
    for (const [slot, nodes] of Object.entries(slotNodes)) {
      slots[slot] = expandList(nodes, scope, `${key}#${slot}`, depth + 1);
    }
  }
  const on = own(node, "on");
  out.push({
    key,
    component: typeof name === "string" ? name : "",
    props,
    bind,
    slots,
    on: isDict(on) ? on : dict(),
    scope,
    children: expandList(own(node, "children"), scope, key, depth + 1),
  });
}

function leaf(key: string, component: string, props: Dict, scope: Scope): ViewNode {
  return { key, component, props, bind: {}, slots: dict(), on: dict(), scope, children: [] };
}

function countNode(budget: Budget): boolean {
  if (budget.nodes >= MAX_NODES) {
    budget.exceeded = true;
    return false;
  }
  budget.nodes++;
  return true;
}
