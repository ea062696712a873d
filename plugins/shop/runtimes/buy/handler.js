/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function buy(ctx) {
  const item = ctx.manualPayload?.item;
  const offer = typeof item === "string" ? await ctx.pluginData.get("stock", item) : null;
  if (offer === null) return { outcome: "failed", error: `The shop does not sell ${JSON.stringify(item ?? null)}.` };
  if (offer.left < 1) return { outcome: "failed", error: `There is no ${item} left.` };

  const bag = await ctx.services.call({ contract: "inventory.items@1", input: {} });
  if (bag.coins < offer.price) {
    return { outcome: "failed", error: `${item} costs ${offer.price} coins; the purse holds ${bag.coins}.` };
  }

  // Staged with this runtime: the thing, the coins and the shelf change together, or none of them does.
  const { coins } = await ctx.services.call({
    contract: "inventory.change@1",
    input: { item, count: 1, cost: offer.price },
  });
  await ctx.pluginData.update("stock", item, [{ op: "inc", path: "/left", by: -1, min: 0 }]);
  await ctx.pluginData.set("sales", ctx.turnId, { item, price: offer.price });
  return { outcome: "success", value: { item, price: offer.price, coins } };
}
