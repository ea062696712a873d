import type { FunctionContext, HandlerResult } from "@covel/plugin-handlers-utils";

/** What these handlers are given. */
export type Context = FunctionContext;
/** What they give back. */
export type Result = HandlerResult;

export type Sky = "fog" | "rain" | "storm" | "snow" | "cloud" | "clear";

/** Where the story is. */
export interface Place {
  place: string;
  sky: Sky;
  turn: number;
}

/** A forecast for a place. */
export interface Forecast {
  place: string;
  turn: number;
  now: Sky;
  sky: Sky;
  wind: number;
}
