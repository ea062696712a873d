import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import type { Text } from "../api/types";
import { en, type MessageKey } from "./en";
import { zh } from "./zh";

export type UiLocale = "en" | "zh-CN";
export type { MessageKey };
/** Keys that have `.one` and `.other` forms, without the suffix. */
export type PluralKey = MessageKey extends infer K ? (K extends `${infer Base}.other` ? Base : never) : never;
type Values = Record<string, string | number>;

const TABLES: Record<UiLocale, Record<MessageKey, string>> = { en, "zh-CN": zh };
const STORAGE_KEY = "covel.locale";

export function translate(locale: UiLocale, key: MessageKey, values: Values = {}): string {
  return TABLES[locale][key].replace(/\{(\w+)\}/g, (mark, name: string) =>
    Object.hasOwn(values, name) ? String(values[name]) : mark,
  );
}

export interface I18n {
  locale: UiLocale;
  setLocale(locale: UiLocale): void;
  t(key: MessageKey, values?: Values): string;
  /** The plural form of `key` for `n`. */
  tn(key: PluralKey, n: number): string;
  /** A text that may come as a locale map: the reader's language, else English, else any. */
  text(value: Text | undefined): string;
  /** Whether `key` is one of the known texts, for codes that come from the server. */
  has(key: string): key is MessageKey;
}

const Context = createContext<I18n | undefined>(undefined);

export function preferredLocale(stored: string | null, languages: readonly string[]): UiLocale {
  if (stored === "en" || stored === "zh-CN") return stored;
  const first = languages.find((language) => /^(en|zh)\b/i.test(language));
  return first?.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}

export function textIn(value: unknown, locale: string): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return value === undefined || value === null ? "" : String(value);
  const map = value as Record<string, unknown>;
  const language = locale.split("-")[0] ?? locale;
  const keys = Object.keys(map);
  const found =
    keys.find((key) => key === locale) ??
    keys.find((key) => key.split("-")[0] === language) ??
    keys.find((key) => key.split("-")[0] === "en") ??
    keys[0];
  const text = found === undefined ? undefined : map[found];
  return typeof text === "string" ? text : "";
}

function readStored(): string | null {
  try {
    return localStorage.getItem(STORAGE_KEY);
  } catch {
    return null;
  }
}

export function I18nProvider({ children, initial }: { children: ReactNode; initial?: UiLocale }) {
  const [locale, setState] = useState<UiLocale>(() => initial ?? preferredLocale(readStored(), navigator.languages));
  useEffect(() => {
    document.documentElement.lang = locale;
  }, [locale]);
  const setLocale = useCallback((next: UiLocale) => {
    setState(next);
    try {
      localStorage.setItem(STORAGE_KEY, next);
    } catch {
      // Storage may be blocked; the choice then lasts for this page only.
    }
  }, []);
  const value = useMemo<I18n>(() => {
    const rules = new Intl.PluralRules(locale);
    return {
      locale,
      setLocale,
      t: (key, values) => translate(locale, key, values),
      tn: (key, n) => {
        const form = rules.select(n) === "one" ? "one" : "other";
        return translate(locale, `${key}.${form}` as MessageKey, { n: n.toLocaleString(locale) });
      },
      text: (text) => textIn(text, locale),
      has: (key): key is MessageKey => Object.hasOwn(en, key),
    };
  }, [locale, setLocale]);
  return <Context value={value}>{children}</Context>;
}

export function useI18n(): I18n {
  const value = useContext(Context);
  if (!value) throw new Error("useI18n outside I18nProvider");
  return value;
}
