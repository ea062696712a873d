/** Longest text of a fact. */
const MAX_TEXT = 2000;
/** Most characters written down. */
const MAX_CAST = 100;

/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function setup(ctx) {
  const record = ctx.world?.worldRecord ?? null;
  const characters = (ctx.world?.characters ?? []).filter((character) => character.type !== "player");

  const facts = [["world", "world", record?.name ?? "An unnamed world", textOf(record?.description)]];
  for (const character of characters.slice(0, MAX_CAST)) {
    facts.push([`character-${character.id}`, "character", character.name, textOf(character.description)]);
  }
  for (const [key, kind, title, text] of facts) {
    await ctx.pluginData.set("facts", key, { kind, title: title.slice(0, 200), text });
  }
  ctx.logger?.info("facts written", { count: facts.length });
  return { outcome: "success", value: { facts: facts.length }, completion: "done" };
}

/**
 * World texts may be a string or a map of locale to string.
 * @param {any} value
 */
function textOf(value) {
  const text = value !== null && typeof value === "object" ? (value.en ?? Object.values(value)[0]) : value;
  return typeof text === "string" ? text.slice(0, MAX_TEXT) : "";
}
