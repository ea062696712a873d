/** Gives a factory its type; the value is the factory itself. */
export const definePlugin = (factory) => factory;
