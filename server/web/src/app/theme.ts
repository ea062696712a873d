import { useCallback, useEffect, useState } from "react";

export type Scheme = "light" | "dark";

const STORAGE_KEY = "covel.scheme";
const system = (): Scheme => (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function stored(): Scheme | undefined {
  try {
    const value = localStorage.getItem(STORAGE_KEY);
    return value === "light" || value === "dark" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The colour scheme: the system's, until the reader chooses the other one. Choosing the system's again goes back to following it. */
export function useScheme(): [Scheme, () => void] {
  const [scheme, setScheme] = useState<Scheme>(() => stored() ?? system());
  useEffect(() => {
    document.documentElement.dataset["covelScheme"] = scheme;
  }, [scheme]);
  useEffect(() => {
    const query = window.matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      if (stored() === undefined) setScheme(system());
    };
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  const toggle = useCallback(() => {
    const next = scheme === "dark" ? "light" : "dark";
    try {
      if (next === system()) localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, next);
    } catch {
      // Storage may be blocked; the choice then lasts for this page only.
    }
    setScheme(next);
  }, [scheme]);
  return [scheme, toggle];
}
