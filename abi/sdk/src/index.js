export * from "./result.js";
export * from "./ids.js";
export * from "./tool.js";
