// The locale-aware methods of the built-in types. They load the module with the locale data's classes when first called.

const replace = (prototype, methods) => {
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(value, "length", { value: name === "localeCompare" ? 1 : 0 });
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true, enumerable: false });
  }
};
const present = (value, name) => {
  if (value === undefined || value === null) throw new TypeError(`String.prototype.${name} called on null or undefined`);
  return value;
};

export function installLocaleMethods(intl) {
  const { toLowerCase, toUpperCase } = String.prototype;
  const numberOf = Number.prototype.valueOf;
  const bigintOf = BigInt.prototype.valueOf;
  replace(String.prototype, {
    localeCompare(that, locales, options) {
      return intl().localeCompare(present(this, "localeCompare"), that, locales, options);
    },
    toLocaleLowerCase(locales) {
      const text = present(this, "toLocaleLowerCase");
      return locales === undefined ? toLowerCase.call(text) : intl().changeCase(false, text, locales);
    },
    toLocaleUpperCase(locales) {
      const text = present(this, "toLocaleUpperCase");
      return locales === undefined ? toUpperCase.call(text) : intl().changeCase(true, text, locales);
    },
  });
  replace(Number.prototype, {
    toLocaleString(locales, options) {
      return intl().numberToLocaleString(numberOf.call(this), locales, options);
    },
  });
  replace(BigInt.prototype, {
    toLocaleString(locales, options) {
      return intl().numberToLocaleString(bigintOf.call(this), locales, options);
    },
  });
  replace(Date.prototype, {
    toLocaleString(locales, options) {
      return intl().dateToLocaleString(this, locales, options, "any", "all");
    },
    toLocaleDateString(locales, options) {
      return intl().dateToLocaleString(this, locales, options, "date", "date");
    },
    toLocaleTimeString(locales, options) {
      return intl().dateToLocaleString(this, locales, options, "time", "time");
    },
  });
}

/**
 * Isolates live in UTC, so that the same turn gives the same text on every machine. Where the machine lives elsewhere, the
 * local half of Date is replaced by its UTC half.
 */
export function liveInUtc() {
  const LocalDate = Date;
  nameUtc(LocalDate.prototype);
  const elsewhere = [0, 182, 20454, 20636].some((day) => new LocalDate(day * 86400000).getTimezoneOffset() !== 0);
  if (elsewhere) useUtc(LocalDate);
}

// The zone is named in the text of a date.
function nameUtc(prototype) {
  const { getTime } = prototype;
  const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (n) => String(n).padStart(2, "0");
  const year = (n) => (n < 0 ? `-${String(-n).padStart(6, "0")}` : String(n).padStart(4, "0"));
  const day = (d) => `${DAYS[d.getUTCDay()]} ${MONTHS[d.getUTCMonth()]} ${two(d.getUTCDate())} ${year(d.getUTCFullYear())}`;
  const clock = (d) => `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())} GMT+0000 (Coordinated Universal Time)`;
  const valid = (d, write) => (Number.isNaN(getTime.call(d)) ? "Invalid Date" : write(d));
  replace(prototype, {
    toDateString() {
      return valid(this, day);
    },
    toTimeString() {
      return valid(this, clock);
    },
    toString() {
      return valid(this, (d) => `${day(d)} ${clock(d)}`);
    },
  });
}

function useUtc(LocalDate) {
  const { prototype } = LocalDate;
  for (const part of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
    for (const verb of part === "Day" ? ["get"] : ["get", "set"]) {
      Object.defineProperty(prototype, `${verb}${part}`, { value: prototype[`${verb}UTC${part}`], writable: true, configurable: true, enumerable: false });
    }
  }
  const { getTime } = prototype;
  replace(prototype, {
    getTimezoneOffset() {
      return Number.isNaN(getTime.call(this)) ? NaN : 0;
    },
    getYear() {
      return this.getUTCFullYear() - 1900;
    },
  });
  // Text without an offset is local time, except a date alone, which is UTC already.
  const parse = (text) => {
    const ms = LocalDate.parse(text);
    if (Number.isNaN(ms) || /(Z|GMT|UTC|[+-]\d{2}:?\d{2}(\s*\(.*\))?)\s*$/i.test(text) || /^[+-]?\d{4,6}(-\d{2}){0,2}$/.test(text)) return ms;
    const local = LocalDate.parse(`${text}Z`);
    return Number.isNaN(local) ? LocalDate.parse(`${text} GMT`) : local;
  };
  const made = (args) => {
    if (args.length > 1) return new LocalDate(LocalDate.UTC(...args));
    const [value] = args;
    if (args.length === 0) return new LocalDate();
    const primitive = value instanceof LocalDate ? getTime.call(value) : typeof value === "object" && value !== null ? value[Symbol.toPrimitive]?.("default") ?? value.valueOf() : value;
    return new LocalDate(typeof primitive === "string" ? parse(primitive) : primitive);
  };
  const UtcDate = new Proxy(LocalDate, {
    construct(target, args, newTarget) {
      const date = made(args);
      return newTarget === UtcDate ? date : Object.setPrototypeOf(date, newTarget.prototype);
    },
    apply: () => new LocalDate().toString(),
    get: (target, name) => (name === "parse" ? parse : Reflect.get(target, name)),
  });
  Object.defineProperty(prototype, "constructor", { value: UtcDate, writable: true, configurable: true, enumerable: false });
  Object.defineProperty(globalThis, "Date", { value: UtcDate, writable: true, configurable: true, enumerable: false });
}
