/**
 * What a shop sells before anyone has changed its shelves.
 * @type {[string, { price: number, left: number }][]}
 */
const SHELVES = [
  ["lantern", { price: 8, left: 2 }],
  ["rope", { price: 3, left: 5 }],
  ["sea-chart", { price: 15, left: 1 }],
];

/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function open(ctx) {
  for (const [item, offer] of SHELVES) {
    if ((await ctx.pluginData.get("stock", item)) === null) await ctx.pluginData.set("stock", item, offer);
  }
  return { outcome: "success", completion: "done" };
}
