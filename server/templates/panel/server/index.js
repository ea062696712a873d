/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function register(covel) {
  covel.registerRpc("clear", clear, { description: "Mark all notes as done." });
}

/** @type {import("@covel/plugin-handlers-utils").RpcHandler} */
async function clear(_payload, ctx) {
  const notes = await ctx.store.listPluginData("notes");
  const open = notes.filter(({ value }) => !value.done);
  for (const { key, value } of open) {
    await ctx.store.setPluginData({ namespace: "notes", key, value: { ...value, done: true } });
  }
  return { ok: true, message: `${open.length} notes done.`, data: { done: open.length } };
}
