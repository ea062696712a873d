// Characters and who acts.

/** The key under which names are the same. */
export function characterNameKey(name) {
  return String(name)
    .normalize("NFKC")
    .toLowerCase()
    .replace(/^["'“”‘’「」『』《》\s]+|["'“”‘’「」『』《》\s]+$/g, "")
    .replace(/^the\s+/, "")
    .replace(/[.·•・'’]/g, "")
    .replace(/\s+/g, "");
}
const aliasesOf = (character) => (Array.isArray(character.aliases) ? character.aliases : []);
/** `Name (aka A, B)`. */
export const characterLabel = (character) => (aliasesOf(character).length === 0 ? character.name : `${character.name} (aka ${aliasesOf(character).join(", ")})`);
/** Aliases of both lists without folded duplicates and without the name itself. */
export function mergeCharacterAliases(name, ...lists) {
  const seen = new Set([characterNameKey(name)]);
  return lists.flat().filter((alias) => {
    const key = typeof alias === "string" ? characterNameKey(alias) : "";
    if (key === "" || seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}
/** The first alias that names another character, with its owner. */
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
const STARTS_UNSPACED = new RegExp(`^[${UNSPACED}]`, "u");
const ENDS_UNSPACED = new RegExp(`[${UNSPACED}]$`, "u");
/** Names as whole words where the script has words; where names overlap the longer one counts. */
function mentionPattern(names) {
  const parts = [...names]
    .sort((a, b) => b.length - a.length)
    .map((name) => {
      const literal = name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
      const before = STARTS_UNSPACED.test(name) ? "" : `(?<!${JOINS})`;
      const after = ENDS_UNSPACED.test(name) ? "" : `(?!${JOINS})`;
      return `${before}${literal}${after}`;
    });
  return new RegExp(parts.join("|"), "giu");
}
/** The ids of the characters that a text names, by name or alias. */
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

function pairs(text) {
  const counts = new Map();
  for (let i = 0; i + 1 < text.length; i++) counts.set(text.slice(i, i + 2), (counts.get(text.slice(i, i + 2)) ?? 0) + 1);
  return counts;
}
function dice(a, b) {
  if (a === b) return 1;
  const left = pairs(a);
  const right = pairs(b);
  let shared = 0;
  for (const [pair, count] of left) shared += Math.min(count, right.get(pair) ?? 0);
  const total = Math.max(a.length - 1, 0) + Math.max(b.length - 1, 0);
  return total === 0 ? 0 : (2 * shared) / total;
}
/** By id, name, alias, then (with `partial`) the single one that contains the query. */
export function resolveCharacter(characters, query, { partial = false } = {}) {
  const byId = characters.find((character) => character.id === query);
  if (byId !== undefined) return { status: "found", character: byId };
  const key = characterNameKey(query);
  for (const namesOf of [(c) => [c.name], aliasesOf]) {
    const hits = characters.filter((character) => namesOf(character).some((name) => characterNameKey(name) === key));
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
/** An English sentence about a character that was not found. */
export function describeUnresolvedCharacter(query, result, characters = []) {
  if (result.status === "ambiguous") return `"${query}" is ambiguous: ${result.candidates.map((c) => `${c.name} (${c.id})`).join(", ")}`;
  const names = (result.closest?.length ? result.closest : characters.slice(0, 30)).map((c) => `${c.name} (${c.id})`);
  const hint = names.length === 0 ? "there are no characters yet" : `${result.closest?.length ? "closest" : "known"}: ${names.join(", ")}`;
  return `no character "${query}"; ${hint}`;
}

/** Every character bound to a seat, the current one first. SEA-4 */
export function seatCharacterIds(seat) {
  const all = [seat?.currentCharacterId, ...(Array.isArray(seat?.characterIds) ? seat.characterIds : [])];
  return [...new Set(all.filter((id) => typeof id === "string" && id !== ""))];
}
/** The seat of the player whose turn it is: marked primary, else the first. */
export const primarySeat = (seats) => (Array.isArray(seats) ? (seats.find((seat) => seat?.primary === true) ?? seats[0]) : undefined);
/** The character a player action names first; otherwise the current character of the primary seat. SEA-2 */
export function actingCharacterOf(actions, characters, seats) {
  const find = (id) => (Array.isArray(characters) ? characters.find((character) => character.id === id) : undefined);
  for (const action of Array.isArray(actions) ? actions : []) {
    const named = find(action?.characterId ?? action?.actorId);
    if (named !== undefined) return named;
  }
  return find(primarySeat(seats)?.currentCharacterId);
}
