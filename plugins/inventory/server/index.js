/** What the purse holds before anything was bought or earned, when the settings do not say. */
const STARTING_COINS = 20;

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function inventory(covel) {
  const { z } = covel.toolkit;
  const item = z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,47}$/)
    .describe("Kind of thing: lowercase letters, digits and dashes");

  covel.registerService({
    name: "items",
    contract: "inventory.items@1",
    modelFacing: true,
    description: "Tell what the player carries and how many coins are in the purse.",
    input: z.object({}),
    output: z.object({
      coins: z.number().int(),
      items: z.array(z.object({ item: z.string(), count: z.number().int() })),
    }),
    async handler(_input, ctx) {
      const rows = await ctx.pluginData.list("items");
      return {
        coins: await coins(ctx),
        items: rows.filter((row) => row.value.count > 0).map((row) => ({ item: row.key, count: row.value.count })),
      };
    },
  });

  covel.registerService({
    name: "change",
    contract: "inventory.change@1",
    access: "write",
    modelFacing: true,
    description: "Put a thing into the player's bag or take it out, and pay or earn coins for it.",
    input: z.object({
      item,
      count: z.number().int().min(-99).max(99).default(1).describe("How many come in; negative when they go"),
      cost: z.number().int().min(-9999).max(9999).default(0).describe("Coins paid; negative when they are earned"),
    }),
    output: z.object({ coins: z.number().int(), count: z.number().int() }),
    async handler({ item, count, cost }, ctx) {
      if (count !== 0) await change(ctx, "items", item, "count", count, 0);
      if (cost !== 0) await change(ctx, "purse", "coins", "amount", -cost, startingCoins(ctx));
      const held = await ctx.pluginData.get("items", item);
      return { coins: await coins(ctx), count: held?.count ?? 0 };
    },
  });
}

/** @param {import("@covel/plugin-handlers-utils").BaseServiceContext} ctx @returns {number} */
function startingCoins(ctx) {
  return ctx.getOwnSettings().startingCoins ?? STARTING_COINS;
}

/** @param {import("@covel/plugin-handlers-utils").ServiceContext | import("@covel/plugin-handlers-utils").WriteServiceContext} ctx @returns {Promise<number>} */
async function coins(ctx) {
  return (await ctx.pluginData.get("purse", "coins"))?.amount ?? startingCoins(ctx);
}

/**
 * Adds to a number of a record. As an operation, not as a new value: whoever else changes the record in the same turn
 * is not overwritten, and what would go below zero is refused as a conflict, by whom it concerns.
 * @param {import("@covel/plugin-handlers-utils").WriteServiceContext} ctx
 * @param {string} namespace
 * @param {string} key
 * @param {string} field
 * @param {number} by
 * @param {number} start
 */
async function change(ctx, namespace, key, field, by, start) {
  if ((await ctx.pluginData.get(namespace, key)) === null) {
    await ctx.pluginData.set(namespace, key, { [field]: start });
  }
  await ctx.pluginData.update(namespace, key, [{ op: "inc", path: `/${field}`, by, min: 0 }]);
}
