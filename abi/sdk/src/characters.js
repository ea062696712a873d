// Characters and who acts.

/** @type {typeof import("./characters.js").characterNameKey} */
export function characterNameKey(name) {
  return String(name)
    .normalize("NFKC")
    .toLowerCase()
    .replace(/^["'“”‘’「」『』《》\s]+|["'“”‘’「」『』《》\s]+$/g, "")
    .replace(/^the\s+/, "")
    .replace(/[.·•・'’]/g, "")
    .replace(/\s+/g, "");
}
/** @param {{ aliases?: string[] }} character */
const aliasesOf = (character) => (Array.isArray(character.aliases) ? character.aliases : []);
/** @type {typeof import("./characters.js").characterLabel} */
export const characterLabel = (character) => (aliasesOf(character).length === 0 ? character.name : `${character.name} (aka ${aliasesOf(character).join(", ")})`);
/** @type {typeof import("./characters.js").mergeCharacterAliases} */
export function mergeCharacterAliases(name, ...lists) {
  const seen = new Set([characterNameKey(name)]);
  return lists.flat().filter((alias) => {
    const key = typeof alias === "string" ? characterNameKey(alias) : "";
    if (key === "" || seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
/** @type {typeof import("./characters.js").findCharacterAliasConflict} */
export function findCharacterAliasConflict(characters, id, aliases) {
  for (const alias of aliases) {
    const key = characterNameKey(alias);
    const owner = characters.find((other) => other.id !== id && [other.name, ...aliasesOf(other)].some((name) => characterNameKey(name) === key));
    if (owner !== undefined) return { alias, owner };
  }
  return undefined;
}

const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
const JOINS = `(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}_]`;
/** Names as whole words where the script has words; where names overlap the longer one counts. @param {string[]} names */
function mentionPattern(names) {
  // Tables of whole scripts: made when asked for, not in every isolate.
  const startsUnspaced = new RegExp(`^[${UNSPACED}]`, "u");
  const endsUnspaced = new RegExp(`[${UNSPACED}]$`, "u");
  const parts = [...names]
    .sort((a, b) => b.length - a.length)
    .map((name) => {
      const literal = name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
      const before = startsUnspaced.test(name) ? "" : `(?<!${JOINS})`;
      const after = endsUnspaced.test(name) ? "" : `(?!${JOINS})`;
      return `${before}${literal}${after}`;
    });
  return new RegExp(parts.join("|"), "giu");
}
/** @type {typeof import("./characters.js").mentionedCharacterIds} */
export function mentionedCharacterIds(text, characters) {
  const owners = new Map();
  for (const character of characters) {
    for (const name of [character.name, ...aliasesOf(character)]) {
      const key = typeof name === "string" ? name.trim().normalize("NFKC") : "";
      if (key === "") continue;
      const folded = key.toLowerCase();
      owners.set(folded, { name: key, ids: [...(owners.get(folded)?.ids ?? []), character.id] });
    }
  }
  const found = new Set();
  if (owners.size === 0) return found;
  for (const [hit] of String(text).normalize("NFKC").matchAll(mentionPattern([...owners.values()].map(({ name }) => name)))) {
    for (const id of owners.get(hit.toLowerCase())?.ids ?? []) found.add(id);
  }
  return found;
}

/** @param {string} text */
function pairs(text) {
  const counts = new Map();
  for (let i = 0; i + 1 < text.length; i++) counts.set(text.slice(i, i + 2), (counts.get(text.slice(i, i + 2)) ?? 0) + 1);
  return counts;
}
/** @param {string} a @param {string} b */
function dice(a, b) {
  if (a === b) return 1;
  const left = pairs(a);
  const right = pairs(b);
  let shared = 0;
  for (const [pair, count] of left) shared += Math.min(count, right.get(pair) ?? 0);
  const total = Math.max(a.length - 1, 0) + Math.max(b.length - 1, 0);
  return total === 0 ? 0 : (2 * shared) / total;
}
/** @type {typeof import("./characters.js").resolveCharacter} */
export function resolveCharacter(characters, query, { partial = false } = {}) {
  const byId = characters.find((character) => character.id === query);
  if (byId !== undefined) return { status: "found", character: byId };
  const key = characterNameKey(query);
  /** @type {((one: import("./world.js").Character) => string[])[]} */
  const places = [(one) => [one.name], aliasesOf];
  for (const namesOf of places) {
    const hits = characters.filter((character) => namesOf(/** @type {any} */ (character)).some((name) => characterNameKey(name) === key));
    if (hits.length === 1) return { status: "found", character: hits[0] };
    if (hits.length > 1) return { status: "ambiguous", candidates: hits };
  }
  if (partial && key !== "") {
    const hits = characters.filter((character) => [character.name, ...aliasesOf(character)].some((name) => characterNameKey(name).includes(key)));
    if (hits.length === 1) return { status: "found", character: hits[0] };
    if (hits.length > 1) return { status: "ambiguous", candidates: hits };
  }
  const closest = characters
    .map((character) => ({ character, score: Math.max(...[character.name, ...aliasesOf(character)].map((name) => dice(characterNameKey(name), key))) }))
    .filter(({ score }) => score >= 0.34)
    .sort((a, b) => b.score - a.score || (a.character.name < b.character.name ? -1 : 1))
    .slice(0, 5)
    .map(({ character }) => character);
  return { status: "missing", closest };
}
/** @type {typeof import("./characters.js").describeUnresolvedCharacter} */
export function describeUnresolvedCharacter(query, result, characters = []) {
  if (result.status === "ambiguous") return `"${query}" is ambiguous: ${result.candidates.map((c) => `${c.name} (${c.id})`).join(", ")}`;
  const closest = result.status === "missing" ? result.closest : [];
  const names = (closest.length > 0 ? closest : characters.slice(0, 30)).map((c) => `${c.name} (${c.id})`);
  const hint = names.length === 0 ? "there are no characters yet" : `${closest.length > 0 ? "closest" : "known"}: ${names.join(", ")}`;
  return `no character "${query}"; ${hint}`;
}

/** @type {typeof import("./characters.js").seatCharacterIds} */
export function seatCharacterIds(seat) {
  const all = [seat?.currentCharacterId, ...(Array.isArray(seat?.characterIds) ? seat.characterIds : [])];
  return [...new Set(all.filter((id) => typeof id === "string" && id !== ""))].map(String);
}
/** @type {typeof import("./characters.js").primarySeat} */
export const primarySeat = (seats) => (Array.isArray(seats) ? (seats.find((seat) => seat?.primary === true) ?? seats[0]) : undefined);
/** @type {typeof import("./characters.js").actingCharacterOf} */
export function actingCharacterOf(actions, characters, seats) {
  /** @param {string | undefined} id */
  const find = (id) => (Array.isArray(characters) ? characters.find((character) => character.id === id) : undefined);
  for (const action of Array.isArray(actions) ? actions : []) {
    const named = find(action?.characterId ?? action?.actorId);
    if (named !== undefined) return named;
  }
  return find(primarySeat(seats)?.currentCharacterId);
}
