import { placeIn, skyIn } from "../../lib/sky.ts";
import type { Context, Place, Result } from "../../lib/types.ts";

export default async function watch(ctx: Context): Promise<Result> {
  const text = ctx.inputs?.scene?.value ?? ctx.manualPayload?.text;
  if (typeof text !== "string") return { outcome: "skipped", skipReason: "there is no story to read" };

  const known = (await ctx.pluginData.get("places", "current")) as Place | null;
  const place = placeIn(text);
  if (place === undefined || place === known?.place) {
    return { outcome: "success", value: { changed: false } };
  }
  const turn = ctx.logicalTurn ?? 1;
  const current: Place = { place, sky: skyIn(text), turn };
  await ctx.pluginData.set("places", "current", current);
  const data = { ...current, previous: known?.place ?? null };
  return {
    outcome: "success",
    value: { changed: true },
    effects: { events: [{ topic: "weather.scene-changed", data }] },
  };
}
