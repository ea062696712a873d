import type { Context, Result } from "../../lib/types.ts";

/** Followers of an event run after all stages, so this counts the diary as it was when the turn began. */
export default async function audit(ctx: Context): Promise<Result> {
  const entries = await ctx.pluginData.list("diary");
  const tally = { entries: entries.length, turn: ctx.logicalTurn ?? 1 };
  await ctx.pluginData.set("tally", "diary", tally);
  return { outcome: "success", value: tally };
}
