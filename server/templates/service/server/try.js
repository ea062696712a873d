/**
 * What calling the service looks like; another package does the same.
 * @type {import("@covel/plugin-handlers-utils").FunctionHandler}
 */
export default async function tryOut(ctx) {
  const answer = await ctx.services.call(
    { contract: "__id__.pick@1", input: { candidates: ctx.manualPayload?.candidates } },
    { timeoutMs: 2000 },
  );
  return { outcome: "success", value: answer };
}
