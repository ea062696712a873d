import { nextSky } from "../../lib/sky.ts";
import type { Context, Place, Result } from "../../lib/types.ts";

/** Winds of force 0 to 8 are ordinary; more would be a matter for the story. */
const MAX_WIND = 8;

export default async function forecast(ctx: Context): Promise<Result> {
  const place = (ctx.triggerEvent?.data ?? ctx.manualPayload) as Place | undefined;
  if (!place?.place) return { outcome: "skipped", skipReason: "no place to make a forecast for" };

  const sky = nextSky(place.sky, ctx.random);
  const data = { place: place.place, turn: place.turn, now: place.sky, sky, wind: ctx.random.int(0, MAX_WIND + 1) };
  return { outcome: "success", value: data, effects: { events: [{ topic: "weather.forecast-made", data }] } };
}
