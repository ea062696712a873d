/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function keep(ctx) {
  if (!/\bpromise\b/iu.test(ctx.playerMessage)) return { outcome: "skipped", skipReason: "nothing was promised" };

  const promise = { text: ctx.playerMessage.slice(0, 400), turn: ctx.logicalTurn };
  await ctx.pluginData.set("promises", "last", promise);
  return { outcome: "success", value: promise };
}
