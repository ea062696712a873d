// Reading locales and options as the standard does: each option once, converted, checked against its values.
import { host } from "covel:kernel";

export const wellFormed = (value) => `${value}`.toWellFormed();

export function requested(locales) {
  if (locales === undefined) return [];
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const list = typeof locales === "string" || tagOf(locales) !== undefined ? [locales] : Object(locales);
  const length = Math.min(Math.max(Math.trunc(Number(list.length)) || 0, 0), 65);
  const tags = [];
  for (let i = 0; i < length; i++) {
    if (!(i in list)) continue;
    const tag = list[i];
    if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) throw new TypeError("Language ID should be string or object.");
    tags.push(wellFormed(tagOf(tag) ?? tag));
  }
  return host.intlCanonical(tags);
}

let tagOfLocale = () => undefined;
export const tagOf = (value) => tagOfLocale(value);
export const knowLocale = (read) => (tagOfLocale = read);

export function optionsObject(options) {
  if (options === undefined) return Object.create(null);
  if (options === null || (typeof options !== "object" && typeof options !== "function")) throw new TypeError("Incorrect options argument: it must be an object");
  return options;
}
export function coerced(options) {
  if (options === undefined) return Object.create(null);
  if (options === null) throw new TypeError("Cannot convert undefined or null to object");
  return Object(options);
}

export function text(options, name, values, fallback) {
  const value = options[name];
  if (value === undefined) return fallback;
  const string = wellFormed(value);
  if (values !== undefined && !values.includes(string)) throw new RangeError(`Value ${string.slice(0, 64)} out of range for Intl options property ${name}`);
  return string;
}
export function flag(options, name) {
  const value = options[name];
  return value === undefined ? undefined : Boolean(value);
}
export function whole(options, name, least, most, fallback) {
  return asWhole(options[name], name, least, most, fallback);
}
export function asWhole(value, name, least, most, fallback) {
  if (value === undefined) return fallback;
  const number = Number(value);
  if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
  return Math.floor(number);
}
/** A keyword value such as a calendar or a numbering system. */
export function keyword(options, name) {
  const value = text(options, name);
  if (value !== undefined && !/^[a-z0-9]{3,8}(-[a-z0-9]{3,8})*$/i.test(value)) throw new RangeError(`Invalid ${name} : ${value.slice(0, 64)}`);
  return value?.toLowerCase();
}
export const matcher = (options) => text(options, "localeMatcher", ["lookup", "best fit"], "best fit");

/** The locale a service uses, and the `-u-` keywords of the chosen tag. */
export function resolve(tags, keys) {
  const [locale, ...pairs] = host.intlResolve(tags, keys);
  const keywords = Object.create(null);
  for (let i = 0; i < pairs.length; i += 2) keywords[pairs[i]] = pairs[i + 1];
  return { locale, keywords };
}
/** The locale with the keywords of the tag that took effect. */
export function withKeywords(locale, used) {
  const keys = Object.keys(used).sort();
  return keys.length === 0 ? locale : `${locale}-u${keys.map((key) => `-${key}${used[key] === "true" || used[key] === "" ? "" : `-${used[key]}`}`).join("")}`;
}
export function supportedLocalesOf(locales, options) {
  const tags = requested(locales);
  if (options !== undefined) matcher(coerced(options));
  return tags.filter((tag) => host.intlSupported(tag));
}
export const define = (target, members) => {
  for (const [name, value] of Object.entries(members)) Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
};
export const tag = (type, name) => Object.defineProperty(type.prototype, Symbol.toStringTag, { value: name, configurable: true });
export const pieces = (flat) => {
  const out = [];
  for (let i = 0; i < flat.length; i += 2) out.push({ type: flat[i], value: flat[i + 1] });
  return out;
};
export const wholeText = (flat) => {
  let out = "";
  for (let i = 1; i < flat.length; i += 2) out += flat[i];
  return out;
};
export const missing = (what, instead) => new TypeError(`${what} is not available in plugin code: ${instead}`);
const ZEROS = { "٠": "arab", "۰": "arabext", "০": "beng", "०": "deva", "၀": "mymr", "๐": "thai", "௦": "tamldec" };
/** The numbering system a locale uses by itself. */
export function numberingSystem(locale) {
  const zero = wholeText(host.intlNumber(`n${JSON.stringify({ locale })}`, "0"));
  return ZEROS[zero] ?? "latn";
}
