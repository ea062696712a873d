// Intl over the host's locale data. Made when plugin code first asks for it.
import { publish } from "covel:kernel";
import { Collator, localeCompare } from "./collator.js";
import { DateTimeFormat, dateToLocaleString } from "./date.js";
import { NumberFormat, numberToLocaleString } from "./number.js";
import { define, missing, requested } from "./options.js";
import { changeCase, ListFormat, Locale, PluralRules, Segmenter } from "./text.js";

// Old code calls these three without `new`.
const callable = (type) => {
  const both = new Proxy(type, { apply: (target, _, args) => new target(...args) });
  type.prototype.constructor = both;
  return both;
};
const absent = (name, instead) => ({
  [name]: class {
    constructor() {
      throw missing(`Intl.${name}`, instead);
    }
    static supportedLocalesOf() {
      return [];
    }
  },
})[name];

const Intl = {};
define(Intl, {
  Collator: callable(Collator),
  DateTimeFormat: callable(DateTimeFormat),
  NumberFormat: callable(NumberFormat),
  ListFormat, Locale, PluralRules, Segmenter,
  RelativeTimeFormat: absent("RelativeTimeFormat", "choose the words with Intl.PluralRules and messages of the package"),
  DisplayNames: absent("DisplayNames", "keep the names in the messages of the package"),
  DurationFormat: absent("DurationFormat", "format the parts with Intl.NumberFormat and join them with Intl.ListFormat"),
  getCanonicalLocales: (locales) => requested(locales),
  supportedValuesOf() {
    throw missing("Intl.supportedValuesOf", "try the value and catch the RangeError");
  },
});
Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });

publish("covel:intl", { Intl, changeCase, dateToLocaleString, localeCompare, numberToLocaleString });
