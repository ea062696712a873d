// Helpers for plugin code, and the types of everything plugin code is given or gives.
export * from "./result.js";
export * from "./ids.js";
export * from "./tool.js";
export * from "./json-text.js";
export * from "./values.js";
export * from "./i18n.js";
export * from "./characters.js";
export * from "./character-fields.js";
export * from "./contracts.js";
export * from "./forms.js";
export * from "./narrative.js";
export * from "./prompt-text.js";
export * from "./search.js";
export type * from "./extension-points.js";
export type * from "./plugin-api.js";
