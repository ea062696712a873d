/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function run(ctx) {
  const text = String(ctx.manualPayload?.text ?? "ping").slice(0, 200);
  const answer = await ask(ctx, text);
  await ctx.pluginData.set("records", `run-${ctx.turnId}`, { kind: "run", text, answer });
  return { outcome: "success", value: { text, answer } };
}

/**
 * What a provider answered; null where there is none, which is no failure.
 * @param {import("@covel/plugin-handlers-utils").FunctionContext} ctx
 * @param {string} text
 */
async function ask(ctx, text) {
  const [echo] = await ctx.services.discover("probe.echo@1");
  if (!echo) return null;
  const { pluginId, name, contract } = echo;
  await ctx.services.call({ contract: "probe.tally@1", input: {} });
  const answer = await ctx.services.call({ pluginId, name, contract, input: { text } }, { timeoutMs: 2_000 });
  return `${answer.text} (${answer.caller}, ${answer.count})`;
}
