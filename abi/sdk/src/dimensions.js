import { z } from "zod";

const id = z.string().min(1);
/** @type {typeof import("./dimensions.js").dimensionDefinitionSchema} */
export const dimensionDefinitionSchema = z.object({
  name: z.string().min(1),
  description: z.string().optional(),
  schema: z.record(z.string(), z.unknown()),
  initialValue: z.unknown().optional(),
  initial: z.unknown().optional(),
  updateRule: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
});
/** @type {typeof import("./dimensions.js").dimensionDefinitionsSchema} */
export const dimensionDefinitionsSchema = z.record(id, dimensionDefinitionSchema);

/** @param {any} schema @returns {unknown} */
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
/** @type {typeof import("./dimensions.js").materializeDimensions} */
export function materializeDimensions(definitions) {
  return Object.fromEntries(
    Object.entries(dimensionDefinitionsSchema.parse(definitions)).map(([key, { name, description, schema, initialValue, initial = initialValue }]) => [
      key,
      { name, ...(description === undefined ? {} : { description }), schema, value: initial === undefined ? initialOf(schema) : initial, version: 1 },
    ]),
  );
}
