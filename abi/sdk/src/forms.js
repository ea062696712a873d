// Questions to the player: blocks for them, and reading what was answered.

const FIELD_TYPES = ["text", "textarea", "select", "checkbox", "number"];
/** @param {unknown} value @param {string} what */
const filled = (value, what) => {
  if (typeof value !== "string" || value.trim() === "") throw new TypeError(`${what} must be a non-empty string`);
};

/** @type {typeof import("./forms.js").createForm} */
export function createForm(form) {
  filled(form.interactionId, "a form's interactionId");
  filled(form.title, "a form's title");
  if (!Array.isArray(form.fields) || form.fields.length === 0) throw new TypeError("a form has at least one field");
  const names = new Set();
  for (const field of form.fields) {
    filled(field?.name, "a field's name");
    if (!FIELD_TYPES.includes(field.type)) throw new TypeError(`field ${field.name}: type is one of ${FIELD_TYPES.join(", ")}`);
    if (names.has(field.name)) throw new TypeError(`field ${field.name} is there twice`);
    names.add(field.name);
    if (field.type === "select" && optionsOf(field).length === 0) throw new TypeError(`field ${field.name}: a select has options`);
    if (field.defaultValue !== undefined) {
      const found = readField(field, field.defaultValue).message;
      if (found !== undefined) throw new TypeError(`field ${field.name}: its default ${found}`);
    }
  }
  return { type: "form", ...form };
}
/** @type {typeof import("./forms.js").createChoices} */
export function createChoices(choice) {
  filled(choice.interactionId, "a choice's interactionId");
  if (!Array.isArray(choice.choices) || choice.choices.length < 2) throw new TypeError("a choice has two choices or more");
  const ids = new Set(choice.choices.map(({ id }) => id));
  if (ids.size !== choice.choices.length) throw new TypeError("each choice has an id of its own");
  for (const { id, label } of choice.choices) {
    filled(id, "a choice's id");
    filled(label, "a choice's label");
  }
  return { type: "choice", ...choice };
}
/** @type {typeof import("./forms.js").createConfirmation} */
export function createConfirmation(question) {
  filled(question.interactionId, "a confirmation's interactionId");
  return { type: "confirmation", ...question };
}
/** @type {typeof import("./forms.js").notificationBlock} */
export const notificationBlock = ({ level, title, message }) => ({
  parts: [{ id: "notification", type: "notification", status: "success", content: { level, title, ...(message === undefined ? {} : { message }) } }],
});

/** @param {import("./proposals.js").FormField} field */
const optionsOf = (field) => (field.options ?? []).map((option) => (typeof option === "string" ? option : option.value));

/** @param {import("./proposals.js").FormField} field @param {unknown} raw @returns {{ value?: unknown, message?: string }} */
function readField(field, raw) {
  switch (field.type) {
    case "checkbox":
      return typeof raw === "boolean" ? { value: raw } : { message: "is yes or no" };
    case "number": {
      const value = typeof raw === "string" && raw.trim() !== "" ? Number(raw) : raw;
      if (typeof value !== "number" || !Number.isFinite(value)) return { message: "is a number" };
      if (field.min !== undefined && value < field.min) return { message: `is at least ${field.min}` };
      if (field.max !== undefined && value > field.max) return { message: `is at most ${field.max}` };
      if (field.step !== undefined && field.step > 0) {
        const steps = (value - (field.min ?? 0)) / field.step;
        // Binary fractions: 0.3 is three steps of 0.1.
        if (Math.abs(steps - Math.round(steps)) > 1e-9) return { message: `goes in steps of ${field.step} from ${field.min ?? 0}` };
      }
      return { value };
    }
    case "select":
      return typeof raw === "string" && optionsOf(field).includes(raw) ? { value: raw } : { message: `is one of ${optionsOf(field).join(", ")}` };
    default:
      return typeof raw === "string" ? { value: raw } : { message: "is a text" };
  }
}
/** @type {typeof import("./forms.js").readFormValues} */
export function readFormValues(fields, values) {
  /** @type {[string, unknown][]} */
  const read = [];
  /** @type {import("./forms.js").FieldIssue[]} */
  const issues = [];
  for (const name of Object.keys(values)) {
    if (!fields.some((field) => field.name === name)) issues.push({ message: `the form has no field ${name}` });
  }
  for (const field of fields) {
    const given = Object.hasOwn(values, field.name) ? values[field.name] : undefined;
    const empty = given === undefined || given === null || (typeof given === "string" && given.trim() === "");
    if (empty) {
      // An empty number is none, not 0.
      if (field.defaultValue !== undefined && given === undefined) read.push([field.name, field.defaultValue]);
      else if (field.required === true) issues.push({ field: field.name, message: `${field.label} is needed` });
      else if (field.type === "checkbox") read.push([field.name, false]);
      continue;
    }
    const { value, message } = readField(field, given);
    if (message !== undefined) issues.push({ field: field.name, message: `${field.label} ${message}` });
    else if (field.type === "checkbox" && field.required === true && value !== true) issues.push({ field: field.name, message: `${field.label} is needed` });
    else read.push([field.name, value]);
  }
  return { values: Object.fromEntries(read), issues };
}
/** @type {typeof import("./forms.js").fillNarrativeTemplate} */
export function fillNarrativeTemplate(template, values) {
  return template.replace(/\{\{\s*([\w.-]+)\s*\}\}([.。])?/g, (_, name, stop = "") => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const text = value === undefined || value === null ? "" : Array.isArray(value) ? value.join(", ") : String(value);
    return /[.。]$/.test(text) ? text : text + stop;
  });
}
