// The safe part of node:crypto. Digests are computed by the host.
import { host } from "covel:kernel";
const { Buffer } = globalThis;

export const randomUUID = () => host.randomUuid();
export const randomBytes = (size) => Buffer.from(host.randomBytes(size));
export function randomInt(min, max) {
  if (max === undefined) [min, max] = [0, min];
  if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max)) throw new TypeError("randomInt takes safe integers");
  const range = max - min;
  if (!(range > 0 && range <= 2 ** 48 - 1)) throw new RangeError("randomInt needs min < max and a range below 2^48");
  const limit = 2 ** 48 - (2 ** 48 % range);
  for (;;) {
    const bytes = host.randomBytes(6);
    const value = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
    if (value < limit) return min + (value % range);
  }
}
class Hash {
  #algorithm;
  #key;
  #parts = [];
  #done = false;
  constructor(algorithm, key) {
    this.#algorithm = String(algorithm).toLowerCase();
    this.#key = key;
    host.digest(this.#algorithm, new Uint8Array(0), key);
  }
  update(data, encoding) {
    if (this.#done) throw new Error("Digest already called");
    this.#parts.push(typeof data === "string" ? Buffer.from(data, encoding) : Buffer.from(data));
    return this;
  }
  digest(encoding) {
    if (this.#done) throw new Error("Digest already called");
    this.#done = true;
    const bytes = Buffer.from(host.digest(this.#algorithm, Buffer.concat(this.#parts), this.#key));
    return encoding === undefined || encoding === "buffer" ? bytes : bytes.toString(encoding);
  }
}
export const createHash = (algorithm) => new Hash(algorithm, undefined);
export const createHmac = (algorithm, key) => new Hash(algorithm, typeof key === "string" ? Buffer.from(key) : Buffer.from(key));
export function timingSafeEqual(a, b) {
  if (a.length !== b.length) throw new RangeError("Input buffers must have the same byte length");
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a[i] ^ b[i];
  return difference === 0;
}
export const webcrypto = globalThis.crypto;
export default { randomUUID, randomBytes, randomInt, createHash, createHmac, timingSafeEqual, webcrypto };
