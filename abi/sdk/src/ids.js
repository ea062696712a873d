const HEX = 8;
const slugOf = (label) => (String(label).toLowerCase().match(/[a-z0-9]+/g) ?? []).join("-").slice(0, 32).replace(/-+$/, "");

function hex(random) {
  if (random !== undefined) return random.int(0, 2 ** 32).toString(16).padStart(HEX, "0");
  return crypto.randomUUID().replaceAll("-", "").slice(0, HEX);
}

/** `prefix-slug-hex8`; the slug is left out when the label has no ASCII letters or digits. */
export function shortId(prefix, label, _sessionId, random) {
  const slug = slugOf(label ?? "");
  return slug === "" ? `${prefix}-${hex(random)}` : `${prefix}-${slug}-${hex(random)}`;
}
/** Independent ids for several labels. */
export const shortIdBatch = (prefix, labels, sessionId, random) => labels.map((label) => shortId(prefix, label, sessionId, random));

/** The slug of a label; a label without ASCII letters or digits gets an eight digit digest. */
export function wordSlug(label) {
  const slug = slugOf(label);
  if (slug !== "") return slug;
  // FNV-1a: stable, and only a name, never a secret.
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(String(label))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
/** `prefix-slug`, with `-2`, `-3`... when taken. */
export function wordId(prefix, label, taken = []) {
  const used = new Set(taken);
  const base = `${prefix}-${wordSlug(label)}`;
  if (!used.has(base)) return base;
  for (let n = 2; ; n++) if (!used.has(`${base}-${n}`)) return `${base}-${n}`;
}
