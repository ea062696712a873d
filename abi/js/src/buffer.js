import { publish } from "covel:kernel";
import { Buffer, kMaxLength, SlowBuffer } from "buffer";
// The package knows base64 only; its reader takes both alphabets.
const { from, isEncoding } = Buffer;
const { toString } = Buffer.prototype;
const urlSafe = (encoding) => typeof encoding === "string" && encoding.toLowerCase() === "base64url";
Buffer.from = function (value, encoding, length) {
  return from.call(this, value, urlSafe(encoding) ? "base64" : encoding, length);
};
Buffer.isEncoding = (encoding) => urlSafe(encoding) || isEncoding(encoding);
Buffer.prototype.toString = function (encoding, ...range) {
  if (!urlSafe(encoding)) return toString.call(this, encoding, ...range);
  return toString.call(this, "base64", ...range).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
};

publish("covel:buffer", { Buffer, kMaxLength, SlowBuffer });
