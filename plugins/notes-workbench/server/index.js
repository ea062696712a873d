/** Notes that `/notes` tells. */
const TOLD = 5;

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function notesWorkbench(covel) {
  covel.registerRpc("notes", notes, { description: "Tell the newest notes." });
  covel.registerRpc("formats", formats, { description: "List the formatters this session can use." });
}

/** @type {import("@covel/plugin-handlers-utils").RpcHandler} */
async function notes(_payload, ctx) {
  const rows = await ctx.store.listPluginData("notes");
  if (rows.length === 0) return { ok: true, message: "No notes yet.", data: { notes: [] } };
  const newest = rows.slice(-TOLD).reverse();
  return { ok: true, message: newest.map((row) => row.value.text).join("\n\n"), data: { notes: newest } };
}

/** @type {import("@covel/plugin-handlers-utils").RpcHandler} */
async function formats(_payload, ctx) {
  const found = await ctx.services.discover("examples.note-format@1");
  return { ok: true, data: { formats: found } };
}
