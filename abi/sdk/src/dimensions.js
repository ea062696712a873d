import { z } from "zod";

const id = z.string().min(1);
/** One dimension a world declares. */
export const dimensionDefinitionSchema = z.object({
  name: z.string().min(1),
  description: z.string().optional(),
  schema: z.record(z.string(), z.unknown()),
  initialValue: z.unknown().optional(),
  initial: z.unknown().optional(),
  updateRule: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
});
/** What a `world.dimensions@1` provider reads: definitions by id. */
export const dimensionDefinitionsSchema = z.record(id, dimensionDefinitionSchema);

function initialOf(schema) {
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (schema.const !== undefined) return structuredClone(schema.const);
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return structuredClone(schema.enum[0]);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([key, member]) => (schema.required ?? []).includes(key) || member.default !== undefined)
          .map(([key, member]) => [key, initialOf(member)]),
      );
    case "array":
      return [];
    case "string":
      return "";
    case "number":
    case "integer":
      return schema.minimum ?? 0;
    case "boolean":
      return false;
    default:
      return null;
  }
}
/** The first state of each dimension: `{name, description?, schema, value, version: 1}` by id. */
export function materializeDimensions(definitions) {
  return Object.fromEntries(
    Object.entries(dimensionDefinitionsSchema.parse(definitions)).map(([key, { name, description, schema, initialValue, initial = initialValue }]) => [
      key,
      { name, ...(description === undefined ? {} : { description }), schema, value: initial === undefined ? initialOf(schema) : initial, version: 1 },
    ]),
  );
}
