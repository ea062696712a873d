/** The part of a runtime context these handlers use. */
export interface Context {
  locale?: string;
  logicalTurn?: number;
  inputs?: Record<string, { value?: unknown } | undefined>;
  triggerEvent?: { topic: string; data: unknown };
  manualPayload?: { text?: string } & Record<string, unknown>;
  random: { int(min: number, max: number): number };
  pluginData: {
    get(namespace: string, key: string): Promise<unknown>;
    list(namespace: string): Promise<{ key: string; value: unknown }[]>;
    set(namespace: string, key: string, value: unknown): Promise<void>;
  };
}

/** What a handler gives back. */
export type Result =
  | { outcome: "success"; value?: unknown; effects?: { events: { topic: string; data: unknown }[] } }
  | { outcome: "skipped"; skipReason: string };

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
