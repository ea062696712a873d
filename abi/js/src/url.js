// URL and URLSearchParams over the host's URL parser, which follows the WHATWG standard.
import { host, publish } from "covel:kernel";

const PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
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
          this.#pairs.push([String(name), String(value)]);
        }
      } else {
        for (const name of Reflect.ownKeys(init)) {
          if (typeof name === "string" && Object.prototype.propertyIsEnumerable.call(init, name)) this.#pairs.push([name, String(init[name])]);
        }
      }
    } else {
      this.#pairs = host.formParse(String(init).replace(/^\?/, ""));
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
    this.#pairs.push([String(name), String(value)]);
    this.#changed();
  }
  delete(name, value) {
    this.#pairs = this.#pairs.filter(([n, v]) => n !== String(name) || (value !== undefined && v !== String(value)));
    this.#changed();
  }
  get(name) {
    return this.#pairs.find(([n]) => n === String(name))?.[1] ?? null;
  }
  getAll(name) {
    return this.#pairs.filter(([n]) => n === String(name)).map(([, v]) => v);
  }
  has(name, value) {
    return this.#pairs.some(([n, v]) => n === String(name) && (value === undefined || v === String(value)));
  }
  set(name, value) {
    const at = this.#pairs.findIndex(([n]) => n === String(name));
    if (at === -1) this.#pairs.push([String(name), String(value)]);
    else {
      this.#pairs = this.#pairs.filter(([n], i) => n !== String(name) || i === at);
      this.#pairs[at][1] = String(value);
    }
    this.#changed();
  }
  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#changed();
  }
  forEach(callback, self) {
    for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
  }
  *entries() {
    for (const [name, value] of this.#pairs) yield [name, value];
  }
  *keys() {
    for (const [name] of this.#pairs) yield name;
  }
  *values() {
    for (const [, value] of this.#pairs) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  toString() {
    return host.formWrite(this.#pairs);
  }
  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

function parse(url, base) {
  const parts = host.urlParse(String(url), base === undefined ? undefined : String(base));
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
    this.#parts = parse(url, base);
  }
  static canParse(url, base) {
    return host.urlParse(String(url), base === undefined ? undefined : String(base)) !== undefined;
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
          this.#parts = part === "href" ? parse(value) : (host.urlSet(this.#parts[0], part, String(value)) ?? this.#parts);
          if (this.#params !== undefined && (part === "search" || part === "href")) refresh(this.#params, this.#parts[PARTS.indexOf("search")]);
        };
      }
      Object.defineProperty(URL.prototype, part, property);
    });
  }
}

publish("covel:url", { URL, URLSearchParams });
