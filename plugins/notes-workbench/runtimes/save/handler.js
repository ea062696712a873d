/** Notes kept; the oldest go first. */
const KEPT = 200;

/** Longest note, in characters. */
const LONGEST = 20_000;

/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function save(ctx) {
  const { text, format = null } = ctx.manualPayload ?? {};
  if (typeof text !== "string" || text.trim() === "") return { outcome: "failed", error: "A note has some text." };
  if (text.length > LONGEST) return { outcome: "failed", error: `A note has at most ${LONGEST} characters.` };

  // Whoever was chosen, by its full name: nothing here knows which formatters there are.
  const shown = format === null ? text : (await formatted(ctx, format, text)).text;
  const number = (await ctx.pluginData.list("notes")).reduce((last, row) => Math.max(last, numberOf(row.key)), 0) + 1;
  const key = `note-${String(number).padStart(6, "0")}`;
  await ctx.pluginData.set("notes", key, {
    text: shown,
    format: format === null ? null : `${format.pluginId}/${format.name}`,
    at: new Date().toISOString(),
  });
  if (number > KEPT) await ctx.pluginData.delete("notes", `note-${String(number - KEPT).padStart(6, "0")}`);
  return { outcome: "success", value: { key, text: shown } };
}

/**
 * @param {import("@covel/plugin-handlers-utils").FunctionContext} ctx
 * @param {{ pluginId: string, name: string }} format
 * @param {string} text
 */
function formatted(ctx, { pluginId, name }, text) {
  return ctx.services.call({ pluginId, name, contract: "examples.note-format@1", input: { text } });
}

/** @param {string} key */
function numberOf(key) {
  return Number(key.slice("note-".length)) || 0;
}
