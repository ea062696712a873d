// PluralRules, ListFormat, Segmenter, Locale and the case methods.
import { host } from "covel:kernel";
import { digitOptions, numeric } from "./number.js";
import { coerced, knowLocale, matcher, missing, optionsObject, pieces, requested, resolve, supportedLocalesOf, tag, text, wellFormed, wholeText } from "./options.js";

export class PluralRules {
  #key;
  #resolved;
  constructor(locales, options) {
    const tags = requested(locales);
    const given = coerced(options);
    matcher(given);
    const type = text(given, "type", ["cardinal", "ordinal"], "cardinal");
    const { digits, roundingMode, rest } = digitOptions(given, 0, 3, false);
    const { locale } = resolve(tags, []);
    this.#key = `p${JSON.stringify({ locale, type, roundingMode, ...digits })}`;
    this.#resolved = { locale, type, ...digits, pluralCategories: host.intlPlurals(this.#key), ...rest };
  }
  select(value) {
    return host.intlNumber(this.#key, numeric(Number(value)))[1];
  }
  selectRange() {
    throw missing("Intl.PluralRules.prototype.selectRange", "use select of the second number");
  }
  resolvedOptions() {
    return { ...this.#resolved, pluralCategories: [...this.#resolved.pluralCategories] };
  }
  static supportedLocalesOf(locales, options) {
    return supportedLocalesOf(locales, options);
  }
}
tag(PluralRules, "Intl.PluralRules");

export class ListFormat {
  #key;
  #resolved;
  constructor(locales, options) {
    const tags = requested(locales);
    const given = optionsObject(options);
    matcher(given);
    const type = text(given, "type", ["conjunction", "disjunction", "unit"], "conjunction");
    const style = text(given, "style", ["long", "short", "narrow"], "long");
    const { locale } = resolve(tags, []);
    this.#resolved = { locale, type, style };
    this.#key = `l${JSON.stringify(this.#resolved)}`;
    host.intlMake(this.#key);
  }
  #parts(list) {
    const members = [];
    if (list !== undefined) {
      for (const member of list) {
        if (typeof member !== "string") throw new TypeError("Iterable yielded a non-string value");
        members.push(wellFormed(member));
        if (members.length > 10000) throw new RangeError("the list is larger than 10000 members");
      }
    }
    return members.length === 0 ? [] : host.intlList(this.#key, members);
  }
  format(list) {
    return wholeText(this.#parts(list));
  }
  formatToParts(list) {
    return pieces(this.#parts(list));
  }
  resolvedOptions() {
    return { ...this.#resolved };
  }
  static supportedLocalesOf(locales, options) {
    return supportedLocalesOf(locales, options);
  }
}
tag(ListFormat, "Intl.ListFormat");

class Segments {
  #text;
  #word;
  #ends;
  #words;
  constructor(granularity, string) {
    this.#text = string;
    this.#word = granularity === "word";
    [this.#ends, this.#words] = host.intlSegment(granularity, wellFormed(string));
  }
  #at(i) {
    const index = i === 0 ? 0 : this.#ends[i - 1];
    const out = { segment: this.#text.slice(index, this.#ends[i]), index, input: this.#text };
    if (this.#word) out.isWordLike = this.#words[i] === 1;
    return out;
  }
  containing(index) {
    const at = Math.trunc(Number(index)) || 0;
    if (at < 0 || at >= this.#text.length) return undefined;
    let [low, high] = [0, this.#ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle] > at) high = middle;
      else low = middle + 1;
    }
    return this.#at(low);
  }
  *[Symbol.iterator]() {
    for (let i = 0; i < this.#ends.length; i++) yield this.#at(i);
  }
}

export class Segmenter {
  #resolved;
  constructor(locales, options) {
    const tags = requested(locales);
    const given = optionsObject(options);
    matcher(given);
    const granularity = text(given, "granularity", ["grapheme", "word", "sentence"], "grapheme");
    this.#resolved = { locale: resolve(tags, []).locale, granularity };
  }
  segment(string) {
    return new Segments(this.#resolved.granularity, `${string}`);
  }
  resolvedOptions() {
    return { ...this.#resolved };
  }
  static supportedLocalesOf(locales, options) {
    return supportedLocalesOf(locales, options);
  }
}
tag(Segmenter, "Intl.Segmenter");

export class Locale {
  #tag;
  #base;
  constructor(of, options) {
    if (typeof of !== "string" && (typeof of !== "object" || of === null)) throw new TypeError("First argument to Intl.Locale constructor can't be empty or missing");
    if (options !== undefined && Object.keys(coerced(options)).length > 0) throw missing("options of Intl.Locale", "write them into the tag, such as de-u-co-phonebk");
    [this.#tag] = requested(of);
    if (this.#tag === undefined) throw new RangeError("Incorrect locale information provided");
    this.#base = this.#tag.split(/-[a-z0-9]-/)[0];
  }
  static {
    knowLocale((value) => (typeof value === "object" && value !== null && #tag in value ? value.#tag : undefined));
  }
  get baseName() {
    return this.#base;
  }
  get language() {
    return this.#base.split("-")[0];
  }
  get script() {
    return this.#base.split("-").find((part, i) => i > 0 && /^[A-Z][a-z]{3}$/.test(part));
  }
  get region() {
    return this.#base.split("-").find((part, i) => i > 0 && /^([A-Z]{2}|\d{3})$/.test(part));
  }
  maximize() {
    throw missing("Intl.Locale.prototype.maximize", "name the script and region you mean");
  }
  minimize() {
    throw missing("Intl.Locale.prototype.minimize", "use baseName");
  }
  toString() {
    return this.#tag;
  }
}
tag(Locale, "Intl.Locale");

export function changeCase(upper, value, locales) {
  const string = wellFormed(value);
  const [first = "en"] = requested(locales);
  return host.intlCase(upper, first, string);
}
