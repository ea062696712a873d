/** Records that a report tells. */
const TOLD = 10;

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function lifecycleProbe(covel) {
  // Lives as long as this version of the package does, for all sessions together.
  /** @type {Set<string>} */
  const opened = new Set();
  covel.onDispose(() => opened.clear());

  covel.registerRpc("report", (payload, ctx) => report(payload, ctx, opened), { description: "Tell what was recorded." });
  covel.registerRpc("submit", submit, { description: "Record a text at once." });
}

/**
 * @param {any} payload
 * @param {import("@covel/plugin-handlers-utils").RpcContext} ctx
 * @param {Set<string>} opened
 */
async function report(payload, ctx, opened) {
  opened.add(ctx.sessionId);
  const kind = payload?.args?.kind;
  const rows = (await ctx.store.listPluginData("records")).filter((row) => !kind || row.value.kind === kind);
  const lines = rows.slice(-TOLD).map((row) => `${row.key}: ${row.value.text}`);
  return {
    ok: true,
    message: lines.length === 0 ? "Nothing recorded yet." : lines.join("\n"),
    data: { count: rows.length },
  };
}

/**
 * Writes at once, outside of any turn: what breaks a schema is refused, and what was written before stays.
 * @type {import("@covel/plugin-handlers-utils").RpcHandler}
 */
async function submit(payload, ctx) {
  const made = await ctx.store.listPluginData("records");
  const key = `submission-${String(made.length + 1).padStart(4, "0")}`;
  await ctx.store.setPluginData({
    namespace: "records",
    key,
    value: { kind: "submission", text: payload?.text, answer: null },
    createdAt: new Date().toISOString(),
  });
  return { ok: true, data: { key } };
}
