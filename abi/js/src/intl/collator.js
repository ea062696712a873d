import { host } from "covel:kernel";
import { coerced, flag, keyword, matcher, requested, resolve, supportedLocalesOf, tag, text, wellFormed, withKeywords } from "./options.js";

const COLLATIONS = { de: ["phonebk"], es: ["trad"], zh: ["pinyin", "stroke", "zhuyin"], ja: ["unihan"], ko: ["unihan"], sv: ["trad"], ar: ["compat"], si: ["dict"] };

export class Collator {
  #key;
  #resolved;
  #compare;
  constructor(locales, options) {
    const tags = requested(locales);
    const given = coerced(options);
    const usage = text(given, "usage", ["sort", "search"], "sort");
    matcher(given);
    const collation = keyword(given, "collation");
    const numeric = flag(given, "numeric");
    const caseFirst = text(given, "caseFirst", ["upper", "lower", "false"]);
    const sensitivity = text(given, "sensitivity", ["base", "accent", "case", "variant"], "variant");
    const ignorePunctuation = flag(given, "ignorePunctuation");
    const { locale, keywords } = resolve(tags, ["co", "kn", "kf"]);
    const known = ["emoji", "eor", ...(COLLATIONS[locale.split("-")[0]] ?? [])];
    const used = {};
    let co = known.includes(collation) ? collation : undefined;
    if (collation === undefined && known.includes(keywords.co)) used.co = co = keywords.co;
    let kn = numeric;
    if (kn === undefined && keywords.kn !== undefined) {
      kn = keywords.kn !== "false";
      if (kn) used.kn = "true";
    }
    let kf = caseFirst;
    if (kf === undefined && ["upper", "lower", "false"].includes(keywords.kf)) used.kf = kf = keywords.kf;
    if (usage === "search") co = undefined;
    this.#key = `c${JSON.stringify({ locale, usage, sensitivity, ignorePunctuation, numeric: kn, caseFirst: kf, collation: co })}`;
    const [first, ignores] = host.intlCollator(this.#key);
    this.#resolved = {
      locale: withKeywords(locale, used), usage, sensitivity, ignorePunctuation: ignores === "true",
      collation: co ?? "default", numeric: kn ?? false, caseFirst: first,
    };
  }
  get compare() {
    const key = this.#key;
    return (this.#compare ??= (left, right) => host.intlCompare(key, wellFormed(left), wellFormed(right)));
  }
  resolvedOptions() {
    return { ...this.#resolved };
  }
  static supportedLocalesOf(locales, options) {
    return supportedLocalesOf(locales, options);
  }
}
tag(Collator, "Intl.Collator");

const PLAIN = 'c{"locale":"en-US"}';
export function localeCompare(left, right, locales, options) {
  const [a, b] = [wellFormed(left), wellFormed(right)];
  if (options === undefined) {
    if (locales === undefined) return host.intlCompare(PLAIN, a, b);
    if (typeof locales === "string") return host.intlCompare(ofTag(locales), a, b);
  }
  return new Collator(locales, options).compare(a, b);
}
// Sorting asks with the same tag again and again.
let last;
let lastCompareKey;
function ofTag(locales) {
  if (last !== locales) {
    const { locale, usage, sensitivity, collation, numeric, caseFirst } = new Collator(locales).resolvedOptions();
    lastCompareKey = `c${JSON.stringify({ locale: locale.split("-u")[0], usage, sensitivity, numeric, caseFirst, collation: collation === "default" ? undefined : collation })}`;
    last = locales;
  }
  return lastCompareKey;
}
