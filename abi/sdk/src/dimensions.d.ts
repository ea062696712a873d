import type { z } from "zod";
export const dimensionDefinitionSchema: z.ZodType<DimensionDefinition>;
export const dimensionDefinitionsSchema: z.ZodType<Record<string, DimensionDefinition>>;
export interface DimensionDefinition {
  name: string;
  description?: string;
  schema: Record<string, unknown>;
  initialValue?: unknown;
  updateRule?: string | Record<string, string>;
}
export interface Dimension {
  name: string;
  description?: string;
  schema: Record<string, unknown>;
  value: unknown;
  version: number;
}
export function materializeDimensions(definitions: unknown): Record<string, Dimension>;
