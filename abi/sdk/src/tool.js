import { z } from "zod";

/** The arguments of a tool call did not fit its parameters. */
export class ToolValidationError extends Error {
  constructor(details) {
    super("Tool parameters failed validation");
    this.name = "ToolValidationError";
    this.code = "VALIDATION_ERROR";
    this.details = details;
  }
}

const pathText = (path) => (path.length === 0 ? "(root)" : path.map(String).join("."));

// Providers read neither `$schema` nor Unicode property escapes; zod still enforces the pattern.
function providerSchema(node) {
  if (Array.isArray(node)) return node.map(providerSchema);
  if (node === null || typeof node !== "object") return node;
  const out = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === "pattern" && typeof value === "string" && /\\p\{/i.test(value)) continue;
    out[key] = providerSchema(value);
  }
  return out;
}

/** A tool module: parameters are validated before `execute` runs. */
export function tool({ name, description, parameters, execute }) {
  if (typeof name !== "string" || name.trim() === "") throw new TypeError("a tool needs a name");
  if (typeof description !== "string") throw new TypeError(`tool ${name} needs a description`);
  if (typeof parameters?.safeParse !== "function") throw new TypeError(`tool ${name}: parameters must be a zod schema`);
  if (typeof execute !== "function") throw new TypeError(`tool ${name}: execute must be a function`);
  let jsonSchema;
  try {
    const { $schema, ...rest } = z.toJSONSchema(parameters, { io: "input" });
    void $schema;
    jsonSchema = providerSchema(rest);
  } catch (error) {
    throw new TypeError(`tool ${name}: its parameters have no JSON Schema form: ${error.message}`);
  }
  return {
    _type: "covel-tool",
    name,
    description,
    parametersSchema: parameters,
    jsonSchema,
    async execute(params, ctx) {
      const parsed = await parameters.safeParseAsync(params);
      if (!parsed.success) {
        throw new ToolValidationError(parsed.error.issues.map((issue) => ({ path: pathText(issue.path), message: issue.message })));
      }
      return execute(parsed.data, ctx);
    },
  };
}
