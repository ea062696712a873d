/**
 * Counts the words of a message; messages that are long enough are kept and announced.
 * @type {import("@covel/plugin-handlers-utils").FunctionHandler}
 */
export default async function count(ctx) {
  const words = ctx.playerMessage.split(/\s+/u).filter((word) => word !== "").length;
  if (words < ctx.userSettings.enough) return { outcome: "skipped", skipReason: "too short to note" };

  const record = { turn: ctx.logicalTurn, words };
  await ctx.pluginData.set("counts", `turn-${String(ctx.logicalTurn).padStart(6, "0")}`, record);
  return {
    outcome: "success",
    value: record,
    effects: { events: [{ topic: "__id__.noted", data: record }] },
  };
}
