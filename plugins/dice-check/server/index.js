import { draw, MAX_SIDES, MIN_SIDES, sidesOf } from "../lib/dice.js";

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function dice(covel) {
  covel.registerRpc("roll", roll, { description: "Roll one die." });
}

/** @type {import("@covel/plugin-handlers-utils").RpcHandler} */
async function roll(payload, ctx) {
  const args = payload?.args ?? {};
  if (args.sides !== undefined && (args.sides < MIN_SIDES || args.sides > MAX_SIDES)) {
    return { ok: false, message: `A die has ${MIN_SIDES} to ${MAX_SIDES} sides.` };
  }
  const sides = sidesOf(args.sides ?? ctx.getOwnSettings?.().sides);
  const reason = Array.isArray(args.reason) ? args.reason.join(" ") : (args.reason ?? "");
  const result = draw(ctx.random, sides);

  const made = await ctx.store.listPluginData("manual");
  const key = `roll-${String(made.length + 1).padStart(6, "0")}`;
  await ctx.store.setPluginData({
    namespace: "manual",
    key,
    value: { sides, result, reason: reason.slice(0, 200) },
    createdAt: new Date().toISOString(),
  });

  const message = `d${sides}: ${result}${reason === "" ? "" : ` (${reason})`}`;
  return { ok: true, message, data: { sides, result, reason } };
}
