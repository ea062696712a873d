export * from "./result.js";
export * from "./ids.js";
export * from "./tool.js";
export * from "./json-text.js";
export * from "./values.js";
export * from "./i18n.js";
export * from "./characters.js";
export * from "./search.js";
