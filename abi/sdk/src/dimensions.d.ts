import type { z } from "zod";
import type { JsonSchema } from "./json.js";
import type { Dimension } from "./world.js";
export type { Dimension } from "./world.js";
/** A dimension as a world declares it. */
export interface DimensionDefinition {
  name: string;
  description?: string;
  schema: JsonSchema;
  initialValue?: unknown;
  /** Another name of `initialValue`. */
  initial?: unknown;
  updateRule?: string | Record<string, string>;
}
/** One dimension a world declares. */
export const dimensionDefinitionSchema: z.ZodType<DimensionDefinition>;
/** What a `world.dimensions@1` provider reads: definitions by id. */
export const dimensionDefinitionsSchema: z.ZodType<Record<string, DimensionDefinition>>;
/** The first state of each dimension, by id; throws when the definitions do not fit. */
export function materializeDimensions(definitions: unknown): Record<string, Dimension>;
