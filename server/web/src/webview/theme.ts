import { useSyncExternalStore } from "react";

/** The tokens a theme consists of, as plugins name them; in CSS each is `--covel-` and the name in kebab case. WEB-6 */
export const TOKENS = [
  "background",
  "surface",
  "foreground",
  "mutedForeground",
  "border",
  "accent",
  "accentForeground",
  "success",
  "warning",
  "danger",
  "radiusControl",
  "radiusCard",
  "fontSans",
  "fontSerif",
  "fontDisplay",
] as const;

export interface Theme {
  id: string;
  scheme: "light" | "dark";
  tokens: Record<(typeof TOKENS)[number], string>;
}

export const cssName = (token: string): string =>
  `--covel-${token.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

let current: Theme | undefined;

function read(): Theme {
  const root = document.documentElement;
  const style = getComputedStyle(root);
  const scheme = root.dataset["covelScheme"] === "dark" ? "dark" : "light";
  const tokens = Object.fromEntries(TOKENS.map((token) => [token, style.getPropertyValue(cssName(token)).trim()]));
  return { id: `covel-${scheme}`, scheme, tokens: tokens as Theme["tokens"] };
}

function subscribe(changed: () => void): () => void {
  const observer = new MutationObserver(() => {
    current = undefined;
    changed();
  });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-covel-scheme"] });
  return () => observer.disconnect();
}

/** The theme the page wears, also after it is switched. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => (current ??= read()));
}
