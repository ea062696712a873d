// Fields of characters against the character schema, by the rules the host commits with.

/** Fields do not fit the character schema. */
export class CharacterFieldValidationError extends Error {
  /** @param {import("./character-fields.js").CharacterFieldIssue[]} issues */
  constructor(issues) {
    super(issues.map(({ field, message }) => `field "${field}" ${message}`).join("; "));
    this.name = "CharacterFieldValidationError";
    /** @type {"CHARACTER_FIELDS_INVALID"} */
    this.code = "CHARACTER_FIELDS_INVALID";
    this.issues = issues;
  }
}

/** @typedef {import("./world.js").CharacterAttributeShape} Shape */
/** @param {unknown} value */
const shown = (value) => (value === null ? "null" : Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : typeof value === "string" ? "a string" : typeof value === "number" ? "a number" : `a ${typeof value}`);
/** @param {unknown} left @param {unknown} right */
const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);
/** @param {Shape["subSchema"]} sub @returns {[string, Shape][]} */
const membersOf = (sub) => (Array.isArray(sub) ? sub.map((member) => [member.id, member]) : Object.entries(sub ?? {}));

/** @param {Shape} shape @param {unknown} value @returns {string | undefined} */
function misfit(shape, value) {
  switch (shape.type) {
    case "string":
      return typeof value === "string" ? undefined : `is ${shown(value)}, not a string`;
    case "boolean":
      return typeof value === "boolean" ? undefined : `is ${shown(value)}, not a boolean`;
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) return `is ${shown(value)}, not a number`;
      if (typeof shape.min === "number" && value < shape.min) return `is ${value}; at least ${shape.min}`;
      return typeof shape.max === "number" && value > shape.max ? `is ${value}; at most ${shape.max}` : undefined;
    case "enum": {
      const options = (shape.options ?? []).map((option) => (option !== null && typeof option === "object" && "value" in option ? option.value : option));
      return options.some((option) => same(option, value)) ? undefined : `is ${JSON.stringify(value)}; one of ${options.map((option) => JSON.stringify(option)).join(", ")}`;
    }
    case "array": {
      if (!Array.isArray(value)) return `is ${shown(value)}, not a list`;
      const { itemType } = shape;
      if (itemType === undefined || itemType === null) return undefined;
      return value.map((item, at) => [at, misfit({ type: itemType }, item)]).filter(([, message]) => message !== undefined).map(([at, message]) => `[${at}] ${message}`)[0];
    }
    case "map":
    case "object": {
      if (value === null || typeof value !== "object" || Array.isArray(value)) return `is ${shown(value)}, not an object`;
      const entries = Object.entries(value);
      const shapes = new Map(membersOf(shape.subSchema));
      for (const [name, member] of entries) {
        const expected = shape.type === "map" ? { type: shape.valueType ?? "string" } : shapes.get(name);
        const message = expected === undefined ? undefined : misfit(expected, member);
        if (message !== undefined) return `.${name} ${message}`;
      }
      return undefined;
    }
    default:
      return undefined;
  }
}
/** @type {typeof import("./character-fields.js").mergeSchemaDefaults} */
export function mergeSchemaDefaults(schema, fields = {}) {
  const missing = (schema?.attributes ?? []).filter(({ id, defaultValue }) => defaultValue !== undefined && defaultValue !== null && !Object.hasOwn(fields, id));
  return { ...fields, ...Object.fromEntries(missing.map(({ id, defaultValue }) => [id, structuredClone(defaultValue)])) };
}
/** @type {typeof import("./character-fields.js").characterFieldIssues} */
export function characterFieldIssues(schema, fields) {
  return (schema?.attributes ?? []).flatMap((attribute) => {
    const value = Object.hasOwn(fields, attribute.id) ? fields[attribute.id] : undefined;
    const message = value === undefined || value === null ? undefined : misfit(attribute, value);
    return message === undefined ? [] : [{ field: attribute.id, message }];
  });
}
/** @type {typeof import("./character-fields.js").assertCharacterFields} */
export function assertCharacterFields(schema, fields) {
  const issues = characterFieldIssues(schema, fields);
  if (issues.length > 0) throw new CharacterFieldValidationError(issues);
  return fields;
}
