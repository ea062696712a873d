// The globals and `node:` modules plugin code finds in the host. Name it in `compilerOptions.types`, with `"lib": ["ES2023"]`:
// then whatever the host does not have is an error in the editor already.

declare function setTimeout<A extends unknown[]>(callback: (...args: A) => void, ms?: number, ...args: A): number;
declare function setInterval<A extends unknown[]>(callback: (...args: A) => void, ms?: number, ...args: A): number;
declare function setImmediate<A extends unknown[]>(callback: (...args: A) => void, ...args: A): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;
declare function clearImmediate(id: number | undefined): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T>(value: T): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;

interface Console {
  assert(condition?: unknown, ...values: unknown[]): void;
  debug(...values: unknown[]): void;
  error(...values: unknown[]): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
}
declare var console: Console;
interface Performance {
  now(): number;
  readonly timeOrigin: number;
}
declare var performance: Performance;
interface Crypto {
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
}
declare var crypto: Crypto;

interface EventInit {
  bubbles?: boolean;
  cancelable?: boolean;
}
declare class Event {
  constructor(type: string, init?: EventInit);
  readonly type: string;
  readonly target: EventTarget | null;
  readonly defaultPrevented: boolean;
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
type EventListener = ((event: Event) => void) | { handleEvent(event: Event): void };
declare class EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: EventListener | null): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: any): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  static timeout(ms: number): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

declare class URLSearchParams {
  constructor(init?: string | Record<string, string> | Iterable<[string, string]> | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}
declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  constructor(encoding?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}
type BufferEncoding = "utf8" | "utf-8" | "hex" | "base64" | "base64url" | "ascii" | "latin1" | "binary" | "utf16le" | "ucs2";
declare class Buffer extends Uint8Array<ArrayBuffer> {
  static from(data: string, encoding?: BufferEncoding): Buffer;
  static from(data: ArrayBuffer | ArrayLike<number> | Iterable<number>): Buffer;
  static alloc(size: number, fill?: string | number): Buffer;
  static byteLength(text: string | ArrayBufferView, encoding?: BufferEncoding): number;
  static concat(list: readonly Uint8Array[], length?: number): Buffer;
  static isBuffer(value: unknown): value is Buffer;
  equals(other: Uint8Array): boolean;
  toString(encoding?: BufferEncoding, start?: number, end?: number): string;
  write(text: string, offset?: number, length?: number, encoding?: BufferEncoding): number;
}
interface ImportMeta {
  /** `file:///<path inside the package>` */
  url: string;
}

declare module "node:crypto" {
  interface Hash {
    update(data: string | ArrayBufferView, encoding?: BufferEncoding): Hash;
    digest(): Buffer;
    digest(encoding: BufferEncoding): string;
  }
  export function createHash(algorithm: "md5" | "sha1" | "sha256" | "sha384" | "sha512"): Hash;
  export function createHmac(algorithm: "md5" | "sha1" | "sha256" | "sha384" | "sha512", key: string | ArrayBufferView): Hash;
  export function randomUUID(): string;
  export function randomInt(max: number): number;
  export function randomInt(min: number, max: number): number;
  export function randomBytes(size: number): Buffer;
}
declare module "node:path" {
  interface Path {
    readonly sep: string;
    readonly delimiter: string;
    basename(path: string, suffix?: string): string;
    dirname(path: string): string;
    extname(path: string): string;
    format(path: { dir?: string; root?: string; base?: string; name?: string; ext?: string }): string;
    isAbsolute(path: string): boolean;
    join(...parts: string[]): string;
    normalize(path: string): string;
    parse(path: string): { root: string; dir: string; base: string; ext: string; name: string };
    relative(from: string, to: string): string;
    resolve(...parts: string[]): string;
  }
  const path: Path;
  export default path;
  export const sep: string;
  export const delimiter: string;
  export const basename: Path["basename"];
  export const dirname: Path["dirname"];
  export const extname: Path["extname"];
  export const format: Path["format"];
  export const isAbsolute: Path["isAbsolute"];
  export const join: Path["join"];
  export const normalize: Path["normalize"];
  export const parse: Path["parse"];
  export const relative: Path["relative"];
  export const resolve: Path["resolve"];
}
declare module "node:url" {
  type Url = URL;
  const Url: typeof URL;
  type Params = URLSearchParams;
  const Params: typeof URLSearchParams;
  export { Url as URL, Params as URLSearchParams };
  export function fileURLToPath(url: string | URL): string;
  export function pathToFileURL(path: string): URL;
}
declare module "node:util" {
  export function format(format?: unknown, ...values: unknown[]): string;
  export function inspect(value: unknown, options?: object): string;
  export function isDeepStrictEqual(left: unknown, right: unknown): boolean;
  export function promisify(callback: (...args: any[]) => void): (...args: any[]) => Promise<any>;
  type Decoder = TextDecoder;
  const Decoder: typeof TextDecoder;
  type Encoder = TextEncoder;
  const Encoder: typeof TextEncoder;
  export { Decoder as TextDecoder, Encoder as TextEncoder };
}
declare module "node:assert" {
  interface Assert {
    (value: unknown, message?: string | Error): asserts value;
    ok(value: unknown, message?: string | Error): asserts value;
    equal(actual: unknown, expected: unknown, message?: string | Error): void;
    notEqual(actual: unknown, expected: unknown, message?: string | Error): void;
    strictEqual(actual: unknown, expected: unknown, message?: string | Error): void;
    notStrictEqual(actual: unknown, expected: unknown, message?: string | Error): void;
    deepEqual(actual: unknown, expected: unknown, message?: string | Error): void;
    deepStrictEqual(actual: unknown, expected: unknown, message?: string | Error): void;
    notDeepStrictEqual(actual: unknown, expected: unknown, message?: string | Error): void;
    throws(block: () => unknown, expected?: unknown, message?: string | Error): void;
    rejects(block: Promise<unknown> | (() => Promise<unknown>), expected?: unknown, message?: string | Error): Promise<void>;
    match(text: string, pattern: RegExp, message?: string | Error): void;
    fail(message?: string | Error): never;
  }
  const assert: Assert;
  export default assert;
}
declare module "node:buffer" {
  type NodeBuffer = Buffer;
  const NodeBuffer: typeof Buffer;
  export { NodeBuffer as Buffer };
}
declare module "node:timers" {
  const timeout: typeof setTimeout;
  const interval: typeof setInterval;
  const immediate: typeof setImmediate;
  const clear: typeof clearTimeout;
  export {
    timeout as setTimeout, interval as setInterval, immediate as setImmediate,
    clear as clearTimeout, clear as clearInterval, clear as clearImmediate,
  };
}
