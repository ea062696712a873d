import { z } from "zod";
import { parseJsonText } from "./json-text.js";

/** The arguments of a tool call did not fit its parameters. */
export class ToolValidationError extends Error {
  /** @param {{ path: string, message: string }[]} details */
  constructor(details) {
    super("Tool parameters failed validation");
    this.name = "ToolValidationError";
    /** @type {"VALIDATION_ERROR"} */
    this.code = "VALIDATION_ERROR";
    this.details = details;
  }
}

/** @param {readonly PropertyKey[]} path */
const pathText = (path) => (path.length === 0 ? "(root)" : path.map(String).join("."));

// Providers read neither `$schema` nor Unicode property escapes; zod still enforces the pattern.
/** @param {any} node @returns {any} */
function providerSchema(node) {
  if (Array.isArray(node)) return node.map(providerSchema);
  if (node === null || typeof node !== "object") return node;
  /** @type {Record<string, unknown>} */
  const out = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === "pattern" && typeof value === "string" && /\\p\{/i.test(value)) continue;
    out[key] = providerSchema(value);
  }
  return out;
}

/** @param {any} value @param {readonly PropertyKey[]} path @returns {any} */
function at(value, path) {
  return path.reduce((/** @type {any} */ inner, key) => (inner === null || typeof inner !== "object" ? undefined : inner[key]), value);
}

// Models sometimes give structure as text. Each such field is parsed once; what cannot be read says why.
/** @param {unknown} params @param {readonly import("zod").core.$ZodIssue[]} issues */
function structureFromText(params, issues) {
  let copy;
  const notes = new Map();
  for (const issue of issues) {
    if (issue.code !== "invalid_type" || issue.path.length === 0 || !["array", "object"].includes(issue.expected)) continue;
    const text = at(params, issue.path);
    if (typeof text !== "string" || !/^\s*[[{]/.test(text)) continue;
    const read = parseJsonText(text, { field: true });
    if (!read.ok) {
      notes.set(issue, `${issue.message}: it is text that is not JSON (${read.reason}, near ${JSON.stringify(read.near)}); give the ${issue.expected} itself`);
      continue;
    }
    copy ??= JSON.parse(JSON.stringify(params));
    const parent = at(copy, issue.path.slice(0, -1));
    parent[/** @type {PropertyKey} */ (issue.path.at(-1))] = read.value;
  }
  return { copy, notes };
}

/** @type {typeof import("./tool.js").tool} */
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
    throw new TypeError(`tool ${name}: its parameters have no JSON Schema form: ${error instanceof Error ? error.message : error}`);
  }
  return {
    _type: "covel-tool",
    name,
    description,
    parametersSchema: parameters,
    jsonSchema,
    async execute(params, ctx) {
      let parsed = await parameters.safeParseAsync(params);
      let notes = new Map();
      if (!parsed.success) {
        const repaired = structureFromText(params, parsed.error.issues);
        notes = repaired.notes;
        if (repaired.copy !== undefined) {
          const again = await parameters.safeParseAsync(repaired.copy);
          if (again.success || notes.size === 0) parsed = again;
        }
      }
      if (!parsed.success) {
        throw new ToolValidationError(parsed.error.issues.map((issue) => ({ path: pathText(issue.path), message: notes.get(issue) ?? issue.message })));
      }
      return execute(parsed.data, ctx);
    },
  };
}
