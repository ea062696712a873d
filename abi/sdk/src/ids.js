const HEX = 8;
/** @param {string} label */
const slugOf = (label) => (String(label).toLowerCase().match(/[a-z0-9]+/g) ?? []).join("-").slice(0, 32).replace(/-+$/, "");

/** @param {import("./contexts.js").RandomSource | undefined} random */
function hex(random) {
  if (random !== undefined) return random.int(0, 2 ** 32).toString(16).padStart(HEX, "0");
  return crypto.randomUUID().replaceAll("-", "").slice(0, HEX);
}

/** @type {typeof import("./ids.js").shortId} */
export function shortId(prefix, label, _sessionId, random) {
  const slug = slugOf(label ?? "");
  return slug === "" ? `${prefix}-${hex(random)}` : `${prefix}-${slug}-${hex(random)}`;
}
/** @type {typeof import("./ids.js").shortIdBatch} */
export const shortIdBatch = (prefix, labels, sessionId, random) => labels.map((label) => shortId(prefix, label, sessionId, random));

/** @type {typeof import("./ids.js").wordSlug} */
export function wordSlug(label) {
  const slug = slugOf(label);
  if (slug !== "") return slug;
  // FNV-1a: stable, and only a name, never a secret.
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(String(label))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
/** @type {typeof import("./ids.js").wordId} */
export function wordId(prefix, label, taken = []) {
  const used = new Set(taken);
  const base = `${prefix}-${wordSlug(label)}`;
  if (!used.has(base)) return base;
  for (let n = 2; ; n++) if (!used.has(`${base}-${n}`)) return `${base}-${n}`;
}
