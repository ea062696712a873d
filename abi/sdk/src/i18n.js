// Texts in several languages. A text is a string or a map from locale to string that has `en`.

const REGISTRY = [
  { locale: "en", name: "English", instruction: "en" },
  { locale: "zh", name: "简体中文", instruction: "zh", also: ["zh-cn", "zh-hans", "zh-sg"] },
  { locale: "zh-hant", name: "繁體中文", instruction: "zh", also: ["zh-tw", "zh-hk", "zh-mo"] },
  { locale: "ja", name: "日本語", instruction: "en" },
  { locale: "ko", name: "한국어", instruction: "en" },
  { locale: "de", name: "Deutsch", instruction: "en" },
  { locale: "fr", name: "Français", instruction: "en" },
  { locale: "es", name: "Español", instruction: "en" },
];
/** @type {typeof import("./i18n.js").LOCALES} */
export const LOCALES = Object.freeze(REGISTRY.map(({ locale, name }) => Object.freeze({ locale, name })));
/** @param {string | undefined} locale */
const fold = (locale) => String(locale ?? "").toLowerCase().replaceAll("_", "-");

/** @type {typeof import("./i18n.js").findLocale} */
export function findLocale(locale) {
  const tag = fold(locale);
  const row = REGISTRY.find((entry) => entry.locale === tag || entry.also?.includes(tag)) ?? REGISTRY.find((entry) => entry.locale === tag.split("-")[0]);
  return row && { locale: row.locale, name: row.name };
}
/** @type {typeof import("./i18n.js").instructionLocaleFor} */
export const instructionLocaleFor = (locale) => (fold(locale).split("-")[0] === "zh" ? "zh" : "en");
/** @type {typeof import("./i18n.js").pickLocaleText} */
export const pickLocaleText = (locale, zh, en) => (["zh", "zh-cn", "zh-hans"].includes(fold(locale)) ? zh : en);

/** @param {any} value @returns {value is { en: string } & Record<string, string>} */
const isMap = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) && typeof value.en === "string" && Object.values(value).every((text) => typeof text === "string");

/** @type {typeof import("./i18n.js").resolveI18nText} */
export function resolveI18nText(text, locale) {
  if (!isMap(text)) return typeof text === "string" ? text : undefined;
  const tag = fold(locale);
  const byTag = new Map(Object.entries(text).map(([key, value]) => [fold(key), value]));
  const known = findLocale(tag)?.locale;
  return byTag.get(tag) ?? (known === undefined ? undefined : byTag.get(known)) ?? byTag.get(tag.split("-")[0]) ?? text.en;
}
/** @type {typeof import("./i18n.js").resolveI18nDeep} */
export function resolveI18nDeep(value, locale) {
  if (isMap(value)) return resolveI18nText(value, locale);
  if (Array.isArray(value)) return value.map((item) => resolveI18nDeep(item, locale));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolveI18nDeep(member, locale)]));
}

/** @param {any} object @param {string} key */
const own = (object, key) => (object !== null && typeof object === "object" && Object.hasOwn(object, key) ? object[key] : undefined);
/** @type {typeof import("./i18n.js").translate} */
export function translate(ctx, text, params) {
  const found = own(ctx?.messages?.translations, text) ?? text;
  return params === undefined ? found : found.replace(/\{([^{}]+)\}/g, (/** @type {string} */ whole, /** @type {string} */ name) => {
    const value = own(params, name);
    return value === undefined ? whole : String(value);
  });
}
/** @type {typeof import("./i18n.js").labelText} */
export function labelText(ctx, text) {
  const labels = own(ctx?.messages?.labels, text);
  return labels === undefined ? text : { ...labels, en: labels.en ?? text };
}
