import { host } from "covel:kernel";
import { asWhole, coerced, keyword, matcher, missing, numberingSystem, pieces, requested, resolve, supportedLocalesOf, tag, text, whole, wholeText, withKeywords } from "./options.js";

const MODES = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];

/** The digit options, as the standard resolves them. `ownRounding`: compact numbers round by themselves when nothing is said. */
export function digitOptions(given, leastDefault, mostDefault, ownRounding) {
  const minimumIntegerDigits = whole(given, "minimumIntegerDigits", 1, 21, 1);
  let [minF, maxF, minS, maxS] = ["minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits"].map((name) => given[name]);
  const roundingIncrement = whole(given, "roundingIncrement", 1, 5000, 1);
  if (roundingIncrement !== 1) throw missing("roundingIncrement", "round the number before you format it");
  const roundingMode = text(given, "roundingMode", MODES, "halfExpand");
  const roundingPriority = text(given, "roundingPriority", ["auto", "morePrecision", "lessPrecision"], "auto");
  if (roundingPriority !== "auto") throw missing(`roundingPriority "${roundingPriority}"`, "give significant digits or fraction digits, not both");
  const trailingZeroDisplay = text(given, "trailingZeroDisplay", ["auto", "stripIfInteger"], "auto");
  if (trailingZeroDisplay !== "auto") throw missing("trailingZeroDisplay", "set minimumFractionDigits to 0");
  const out = { minimumIntegerDigits };
  if (minS !== undefined || maxS !== undefined) {
    out.minimumSignificantDigits = asWhole(minS, "minimumSignificantDigits", 1, 21, 1);
    out.maximumSignificantDigits = asWhole(maxS, "maximumSignificantDigits", out.minimumSignificantDigits, 21, 21);
  } else if (minF !== undefined || maxF !== undefined || !ownRounding) {
    minF = asWhole(minF, "minimumFractionDigits", 0, 100);
    maxF = asWhole(maxF, "maximumFractionDigits", 0, 100);
    if (minF === undefined) minF = Math.min(leastDefault, maxF ?? leastDefault);
    else if (maxF === undefined) maxF = Math.max(mostDefault, minF);
    else if (minF > maxF) throw new RangeError("maximumFractionDigits value is out of range.");
    out.minimumFractionDigits = minF;
    out.maximumFractionDigits = maxF ?? Math.max(mostDefault, minF);
  }
  return { digits: out, roundingMode, rest: { roundingIncrement, roundingMode, roundingPriority, trailingZeroDisplay } };
}

/** A number as the host takes it. */
export function numeric(value) {
  const primitive = typeof value === "object" && value !== null ? value[Symbol.toPrimitive]?.("number") ?? value.valueOf() : value;
  if (typeof primitive === "bigint") return primitive.toString();
  if (typeof primitive === "string" && /^[+-]?\d{1,900}(\.\d{1,90})?$/.test(primitive)) return primitive.replace(/^\+/, "");
  const number = Number(primitive);
  return Object.is(number, -0) ? "-0" : String(number);
}

export class NumberFormat {
  #key;
  #resolved;
  #format;
  constructor(locales, options) {
    const tags = requested(locales);
    const given = coerced(options);
    matcher(given);
    const wanted = keyword(given, "numberingSystem");
    const style = text(given, "style", ["decimal", "percent", "currency", "unit"], "decimal");
    const currency = text(given, "currency");
    if (currency !== undefined && !/^[a-z]{3}$/i.test(currency)) throw new RangeError(`Invalid currency code : ${currency.slice(0, 64)}`);
    if (style === "currency" && currency === undefined) throw new TypeError("Currency code is required with currency style.");
    if (style === "unit" && given.unit === undefined) throw new TypeError("Unit is required with unit style.");
    const notation = text(given, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
    const percent = style === "percent";
    const { digits, roundingMode, rest } = digitOptions(given, 0, percent ? 0 : 3, notation === "compact");
    const compactDisplay = text(given, "compactDisplay", ["short", "long"], "short");
    const useGrouping = grouping(given.useGrouping, notation);
    const signDisplay = text(given, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto");
    const { locale, keywords } = resolve(tags, ["nu"]);
    const used = {};
    if (wanted === undefined && keywords.nu !== undefined) used.nu = keywords.nu;
    const system = wanted ?? keywords.nu;
    const spec = { locale, numberingSystem: system, style, notation, compactDisplay, signDisplay, useGrouping: String(useGrouping), roundingMode, ...digits };
    this.#key = `n${JSON.stringify(spec)}`;
    host.intlMake(this.#key);
    const shown = notation === "compact" && digits.minimumFractionDigits === undefined && digits.minimumSignificantDigits === undefined
      ? { minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2 } : {};
    this.#resolved = {
      locale: withKeywords(locale, used), numberingSystem: system ?? numberingSystem(locale), style,
      ...digits, ...shown, useGrouping, notation, ...(notation === "compact" ? { compactDisplay } : {}), signDisplay, ...rest,
    };
    if (notation === "compact" && "minimumSignificantDigits" in shown) this.#resolved.roundingPriority = "morePrecision";
  }
  get format() {
    const key = this.#key;
    return (this.#format ??= (value) => wholeText(host.intlNumber(key, numeric(value))));
  }
  formatToParts(value) {
    return pieces(host.intlNumber(this.#key, numeric(value)));
  }
  formatRange() {
    throw missing("Intl.NumberFormat.prototype.formatRange", "format both numbers and put a dash between them");
  }
  formatRangeToParts() {
    throw missing("Intl.NumberFormat.prototype.formatRangeToParts", "use formatToParts of both numbers");
  }
  resolvedOptions() {
    return { ...this.#resolved };
  }
  static supportedLocalesOf(locales, options) {
    return supportedLocalesOf(locales, options);
  }
}
tag(NumberFormat, "Intl.NumberFormat");

function grouping(value, notation) {
  const fallback = notation === "compact" ? "min2" : "auto";
  if (value === undefined) return fallback;
  if (value === true) return "always";
  if (value === false || value === null || value === 0 || value === "") return false;
  const string = String(value);
  if (string === "true" || string === "false") return fallback;
  if (!["min2", "auto", "always"].includes(string)) throw new RangeError(`Value ${string.slice(0, 64)} out of range for Intl.NumberFormat options property useGrouping`);
  return string;
}

const PLAIN = `n${JSON.stringify({ locale: "en-US" })}`;
export function numberToLocaleString(value, locales, options) {
  if (locales === undefined && options === undefined) return wholeText(host.intlNumber(PLAIN, numeric(value)));
  return new NumberFormat(locales, options).format(value);
}
