/** What crosses between plugin code and the host. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };
/** A JSON Schema, draft 2020-12 or draft-7. */
export type JsonSchema = { [keyword: string]: unknown };
/** A text, or the same text in several languages; English is always there. */
export type I18nText = string | ({ en: string } & { [locale: string]: string });
/** Texts of a package (`locales/<locale>.yaml`) for the language of the session. */
export interface MessageCatalogue {
  /** English text to the session's text. */
  readonly translations: Readonly<Record<string, string>>;
  /** English text to all its languages. */
  readonly labels: Readonly<Record<string, Readonly<Record<string, string>>>>;
}
