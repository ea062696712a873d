/** @type {typeof import("./extension-points.js").EXTENSION_POINTS} */
export const EXTENSION_POINTS = Object.freeze({
  "prompt.segment@1": Object.freeze({ mode: "collect", timeoutMs: 500, onError: "skip" }),
  "prompt.history-transform@1": Object.freeze({ mode: "pipeline", timeoutMs: 500, onError: "skip" }),
  "ui.slot@1": Object.freeze({ mode: "pipeline", timeoutMs: 500, onError: "skip" }),
  "media.image-flow@1": Object.freeze({ mode: "single", timeoutMs: 500, onError: "skip" }),
  "session.world-context@1": Object.freeze({ mode: "single", timeoutMs: 500, onError: "fail-turn" }),
  "history.compact@2": Object.freeze({ mode: "single", timeoutMs: 60_000, onError: "skip" }),
});
/** @type {typeof import("./extension-points.js").isExtensionPoint} */
export const isExtensionPoint = /** @returns {id is import("./extension-points.js").ExtensionPointId} */ (id) => Object.hasOwn(EXTENSION_POINTS, id);
