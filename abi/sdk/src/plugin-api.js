/** @type {typeof import("./plugin-api.js").definePlugin} */
export const definePlugin = (factory) => factory;
