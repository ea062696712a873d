import { createContext, useContext } from "react";
import type { Scope } from "./expression";

/** What a panel's components need from the page around them. */
export interface ViewHost {
  locale: string;
  /** A turn or another action is running: nothing may be triggered. */
  locked: boolean;
  /** Writes an edit of an input to the panel's own state. */
  edit(path: string, value: unknown): void;
  /** Runs the action bound to an event, if any. `scope` is that of the node. */
  fire(binding: unknown, scope: Scope): void;
}

export const ViewHostContext = createContext<ViewHost | undefined>(undefined);

export function useViewHost(): ViewHost {
  const host = useContext(ViewHostContext);
  if (!host) throw new Error("a view component was drawn outside a view");
  return host;
}
