import { sentence } from "../../lib/sky.ts";
import type { Context, Forecast, Result } from "../../lib/types.ts";

export default async function diary(ctx: Context): Promise<Result> {
  const made = (ctx.triggerEvent?.data ?? ctx.manualPayload) as Forecast | undefined;
  if (!made?.place) return { outcome: "skipped", skipReason: "no forecast to write down" };

  const key = `turn-${String(made.turn).padStart(6, "0")}`;
  await ctx.pluginData.set("diary", key, { ...made, text: sentence(made, ctx.locale) });
  return { outcome: "success", value: { key } };
}
