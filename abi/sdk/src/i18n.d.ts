import type { I18nText, MessageCatalogue } from "./json.js";
export interface Locale {
  readonly locale: string;
  readonly name: string;
}
/** The locales with a name of their own. */
export const LOCALES: readonly Locale[];
/** The registered locale a tag means, or undefined. */
export function findLocale(locale: string | undefined): Locale | undefined;
/** The language instructions are written in for a session. */
export function instructionLocaleFor(locale: string | undefined): "en" | "zh";
/** `zh`, `zh-CN` and `zh-Hans` take the Chinese text, all else the English one. */
export function pickLocaleText<T>(locale: string | undefined, zh: T, en: T): T;
/** One text of a localised text: the exact locale, its language, English. */
export function resolveI18nText(text: I18nText | undefined, locale: string | undefined): string | undefined;
/** A copy of a document with every localised text resolved. */
export function resolveI18nDeep(value: unknown, locale: string | undefined): any;
/** The session's text for an English text; `{name}` is filled from `params`, unknown names stay. */
export function translate(ctx: { readonly messages?: MessageCatalogue }, text: string, params?: Record<string, unknown>): string;
/** All languages of an English text, for the page to choose from; the text itself when there is no other. */
export function labelText(ctx: { readonly messages?: MessageCatalogue }, text: string): I18nText;
