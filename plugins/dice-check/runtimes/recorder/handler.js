import { turnKey } from "../../lib/dice.js";

/** Turns kept; older ones are dropped. */
const KEPT = 50;

/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function recorder(ctx) {
  const pool = ctx.inputs?.pool?.value ?? ctx.manualPayload?.pool;
  if (!pool) return { outcome: "skipped", skipReason: "no dice were drawn this turn" };

  const turn = ctx.logicalTurn ?? 1;
  await ctx.pluginData.set("rolls", turnKey(turn), { turn, sides: pool.sides, rolls: pool.rolls });

  const keys = (await ctx.pluginData.list("rolls")).map((row) => row.key).sort();
  for (const key of keys.slice(0, Math.max(0, keys.length - KEPT))) {
    await ctx.pluginData.delete("rolls", key);
  }
  return { outcome: "success", value: { turn, total: pool.rolls.reduce((/** @type {number} */ sum, /** @type {number} */ roll) => sum + roll, 0) } };
}
