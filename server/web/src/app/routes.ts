import { useSyncExternalStore } from "react";

/** The page's places, kept in the fragment so that the server needs to know only `/`. */
export type Route = { name: "setup" } | { name: "play"; sessionId: string };

export function parseRoute(hash: string): Route {
  const match = /^#\/play\/([^/?#]+)$/.exec(hash);
  if (!match?.[1]) return { name: "setup" };
  try {
    return { name: "play", sessionId: decodeURIComponent(match[1]) };
  } catch {
    return { name: "setup" };
  }
}

export function routeHref(route: Route): string {
  return route.name === "setup" ? "#/" : `#/play/${encodeURIComponent(route.sessionId)}`;
}

export function navigate(route: Route): void {
  window.location.hash = routeHref(route);
}

const subscribe = (changed: () => void) => {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
};

/** The current fragment; parse it with {@link parseRoute}. A string, so that equal places are equal values. */
export function useHash(): string {
  return useSyncExternalStore(subscribe, () => window.location.hash);
}
