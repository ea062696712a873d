// URL and URLSearchParams over the host's URL parser, which follows the WHATWG standard.
import { host, publish } from "covel:kernel";

const PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
const text = (value) => `${value}`.toWellFormed();
const need = (count, args) => {
  if (args.length < count) throw new TypeError(`${count} argument${count === 1 ? "" : "s"} must be specified`);
};
let connect;
let refresh;

class URLSearchParams {
  #pairs = [];
  #url;
  constructor(init = "") {
    if (init === null || init === undefined) return;
    if (typeof init === "object" || typeof init === "function") {
      const iterator = init[Symbol.iterator];
      if (typeof iterator === "function") {
        for (const pair of init) {
          const [name, value, ...more] = pair;
          if (value === undefined || more.length > 0) throw new TypeError("each pair must have a name and a value");
          this.#pairs.push([text(name), text(value)]);
        }
      } else {
        for (const name of Reflect.ownKeys(init)) {
          if (Object.prototype.propertyIsEnumerable.call(init, name)) this.#pairs.push([text(name), text(init[name])]);
        }
      }
    } else {
      this.#pairs = host.formParse(text(init).replace(/^\?/, ""));
    }
  }
  static {
    connect = (url, search) => {
      const params = new URLSearchParams(search);
      params.#url = url;
      return params;
    };
    refresh = (params, search) => {
      params.#pairs = host.formParse(search.replace(/^\?/, ""));
    };
  }
  #changed() {
    if (this.#url !== undefined) this.#url(this.toString());
  }
  get size() {
    return this.#pairs.length;
  }
  append(name, value) {
    need(2, arguments);
    this.#pairs.push([text(name), text(value)]);
    this.#changed();
  }
  delete(name, value) {
    need(1, arguments);
    const [key, only] = [text(name), value === undefined ? undefined : text(value)];
    this.#pairs = this.#pairs.filter(([n, v]) => n !== key || (only !== undefined && v !== only));
    this.#changed();
  }
  get(name) {
    need(1, arguments);
    const key = text(name);
    return this.#pairs.find(([n]) => n === key)?.[1] ?? null;
  }
  getAll(name) {
    need(1, arguments);
    const key = text(name);
    return this.#pairs.filter(([n]) => n === key).map(([, v]) => v);
  }
  has(name, value) {
    need(1, arguments);
    const [key, only] = [text(name), value === undefined ? undefined : text(value)];
    return this.#pairs.some(([n, v]) => n === key && (only === undefined || v === only));
  }
  set(name, value) {
    need(2, arguments);
    const [key, to] = [text(name), text(value)];
    const at = this.#pairs.findIndex(([n]) => n === key);
    if (at === -1) this.#pairs.push([key, to]);
    else {
      this.#pairs = this.#pairs.filter(([n], i) => n !== key || i === at);
      this.#pairs[at][1] = to;
    }
    this.#changed();
  }
  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#changed();
  }
  forEach(callback, self) {
    if (typeof callback !== "function") throw new TypeError("The \"callback\" argument must be a function");
    for (const [name, value] of this.entries()) callback.call(self, value, name, this);
  }
  *entries() {
    // What changes while it is walked shows.
    for (let i = 0; i < this.#pairs.length; i++) yield [...this.#pairs[i]];
  }
  *keys() {
    for (const [name] of this.entries()) yield name;
  }
  *values() {
    for (const [, value] of this.entries()) yield value;
  }
  toString() {
    return host.formWrite(this.#pairs);
  }
  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });

function parse(url, base) {
  const parts = host.urlParse(text(url), base === undefined ? undefined : text(base));
  if (parts === undefined) {
    const error = new TypeError("Invalid URL");
    error.code = "ERR_INVALID_URL";
    error.input = String(url);
    throw error;
  }
  return parts;
}

class URL {
  #parts;
  #params;
  constructor(url, base) {
    need(1, arguments);
    this.#parts = parse(url, base);
  }
  static canParse(url, base) {
    need(1, arguments);
    return host.urlParse(text(url), base === undefined ? undefined : text(base)) !== undefined;
  }
  static parse(url, base) {
    return URL.canParse(url, base) ? new URL(url, base) : null;
  }
  get searchParams() {
    this.#params ??= connect((search) => {
      this.#parts = host.urlSet(this.#parts[0], "search", search) ?? this.#parts;
    }, this.#parts[PARTS.indexOf("search")]);
    return this.#params;
  }
  toString() {
    return this.#parts[0];
  }
  toJSON() {
    return this.#parts[0];
  }
  get [Symbol.toStringTag]() {
    return "URL";
  }
  static {
    PARTS.forEach((part, index) => {
      const property = {
        __proto__: null,
        get() {
          return this.#parts[index];
        },
        enumerable: true,
        configurable: true,
      };
      if (part !== "origin") {
        property.set = function (value) {
          this.#parts = part === "href" ? parse(value) : (host.urlSet(this.#parts[0], part, text(value)) ?? this.#parts);
          if (this.#params !== undefined && (part === "search" || part === "href")) refresh(this.#params, this.#parts[PARTS.indexOf("search")]);
        };
      }
      Object.defineProperty(URL.prototype, part, property);
    });
  }
}

publish("covel:url", { URL, URLSearchParams });
