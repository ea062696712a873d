import { host } from "covel:kernel";
import { coerced, flag, keyword, matcher, missing, numberingSystem, pieces, requested, resolve, supportedLocalesOf, tag, text, wellFormed, whole, wholeText, withKeywords } from "./options.js";

const COMPONENTS = {
  weekday: ["narrow", "short", "long"], era: ["narrow", "short", "long"], year: ["2-digit", "numeric"],
  month: ["2-digit", "numeric", "narrow", "short", "long"], day: ["2-digit", "numeric"], dayPeriod: ["narrow", "short", "long"],
  hour: ["2-digit", "numeric"], minute: ["2-digit", "numeric"], second: ["2-digit", "numeric"],
};
const ZONE_NAMES = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
const STYLES = ["full", "long", "medium", "short"];
const CALENDARS = ["buddhist", "chinese", "coptic", "dangi", "ethioaa", "ethiopic", "gregory", "hebrew", "indian", "islamic", "islamic-umalqura", "islamic-tbla", "islamic-civil", "iso8601", "japanese", "persian", "roc"];
const time = (value) => {
  const ms = value === undefined ? Date.now() : Number(value);
  if (!(Math.abs(ms) <= 8.64e15)) throw new RangeError("Invalid time value");
  return Math.trunc(ms);
};

export class DateTimeFormat {
  #key;
  #resolved;
  #format;
  constructor(locales, options, required = "any", defaults = "date") {
    const [need, fill] = [required, defaults];
    const tags = requested(locales);
    const given = coerced(options);
    matcher(given);
    const calendar = keyword(given, "calendar");
    const numbering = keyword(given, "numberingSystem");
    let hour12 = flag(given, "hour12");
    let hourCycle = text(given, "hourCycle", ["h11", "h12", "h23", "h24"]);
    if (hour12 !== undefined) hourCycle = undefined;
    const zone = given.timeZone;
    const timeZone = zone === undefined ? "UTC" : host.intlZone(wellFormed(zone));
    const fields = {};
    for (const [name, values] of Object.entries(COMPONENTS)) {
      const value = text(given, name, values);
      if (value !== undefined) fields[name] = value;
      if (name === "second") {
        const digits = whole(given, "fractionalSecondDigits", 1, 3);
        if (digits !== undefined) fields.fractionalSecondDigits = digits;
      }
    }
    const timeZoneName = text(given, "timeZoneName", ZONE_NAMES);
    const explicit = Object.keys(fields)[0] ?? (timeZoneName === undefined ? undefined : "timeZoneName");
    if (timeZoneName !== undefined) fields.timeZoneName = timeZoneName;
    text(given, "formatMatcher", ["basic", "best fit"]);
    const dateStyle = text(given, "dateStyle", STYLES);
    const timeStyle = text(given, "timeStyle", STYLES);
    if (dateStyle !== undefined || timeStyle !== undefined) {
      if (explicit !== undefined) throw new TypeError(`Can't set option ${explicit} when ${dateStyle !== undefined ? "dateStyle" : "timeStyle"} is used`);
      if (need === "date" && timeStyle !== undefined) throw new TypeError("Invalid option : timeStyle");
      if (need === "time" && dateStyle !== undefined) throw new TypeError("Invalid option : dateStyle");
    } else {
      const date = ["weekday", "year", "month", "day"].some((name) => name in fields);
      const clock = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"].some((name) => name in fields);
      const plain = !((need !== "time" && date) || (need !== "date" && clock));
      if (plain && (fill === "date" || fill === "all")) fields.year = fields.month = fields.day = "numeric";
      if (plain && (fill === "time" || fill === "all")) fields.hour = fields.minute = fields.second = "numeric";
    }
    const { locale, keywords } = resolve(tags, ["ca", "nu", "hc"]);
    const used = {};
    const pick = (option, key) => {
      if (option !== undefined || keywords[key] === undefined) return option;
      used[key] = keywords[key];
      return keywords[key];
    };
    const ca = [pick(calendar, "ca")].find((name) => CALENDARS.includes(name));
    if (ca === undefined) delete used.ca;
    const nu = pick(numbering, "nu");
    if (hour12 === undefined) hourCycle = pick(hourCycle, "hc");
    const spec = { locale, calendar: ca, numberingSystem: nu, timeZone, hour12, hourCycle, dateStyle, timeStyle, ...fields };
    this.#key = `d${JSON.stringify(spec)}`;
    host.intlMake(this.#key);
    const shown = { ...fields };
    // What a locale shows, where it does not follow the option.
    if (shown.minute !== undefined) shown.minute = "2-digit";
    if (shown.second !== undefined) shown.second = "2-digit";
    this.#resolved = () => {
      const out = {
        locale: withKeywords(locale, used),
        calendar: ca ?? ({ fa: "persian", th: "buddhist" }[locale.split("-")[0]] ?? "gregory"),
        numberingSystem: nu ?? numberingSystem(locale), timeZone,
      };
      if (timeStyle !== undefined || shown.hour !== undefined) {
        const midnight = pieces(host.intlInstant(`d${JSON.stringify({ locale, hour12, hourCycle, hour: "numeric", minute: "numeric" })}`, 0));
        const twelve = midnight.some(({ type }) => type === "dayPeriod");
        out.hourCycle = twelve ? (Number(midnight.find(({ type }) => type === "hour")?.value) === 0 ? "h11" : "h12") : hourCycle === "h24" ? "h24" : "h23";
        out.hour12 = twelve;
        if (!twelve && shown.hour !== undefined) shown.hour = "2-digit";
      }
      Object.assign(out, shown);
      if (dateStyle !== undefined) out.dateStyle = dateStyle;
      if (timeStyle !== undefined) out.timeStyle = timeStyle;
      return out;
    };
  }
  get format() {
    const key = this.#key;
    // A plain space, as other engines write it: text is often taken apart at it. Parts keep the narrow one.
    return (this.#format ??= (date) => wholeText(host.intlInstant(key, time(date))).replaceAll("\u202f", " "));
  }
  formatToParts(date) {
    return pieces(host.intlInstant(this.#key, time(date)));
  }
  formatRange() {
    throw missing("Intl.DateTimeFormat.prototype.formatRange", "format both dates and put a dash between them");
  }
  formatRangeToParts() {
    throw missing("Intl.DateTimeFormat.prototype.formatRangeToParts", "use formatToParts of both dates");
  }
  resolvedOptions() {
    return this.#resolved();
  }
  static supportedLocalesOf(locales, options) {
    return supportedLocalesOf(locales, options);
  }
}
Object.defineProperty(DateTimeFormat, "length", { value: 0 });
tag(DateTimeFormat, "Intl.DateTimeFormat");

export function dateToLocaleString(date, locales, options, need, fill) {
  const ms = Date.prototype.getTime.call(date);
  if (Number.isNaN(ms)) return "Invalid Date";
  return new DateTimeFormat(locales, options, need, fill).format(ms);
}
