const KIND = "covel.tool-result";
/** @param {any} value @returns {value is import("./proposals.js").ToolResult<any>} */
const isEnvelope = (value) => value !== null && typeof value === "object" && value.kind === KIND && "content" in value;

/** @type {typeof import("./result.js").getToolContent} */
export const getToolContent = (result) => (isEnvelope(result) ? result.content : result);
/** @type {typeof import("./result.js").getPendingProposals} */
export const getPendingProposals = (result) => (isEnvelope(result) && Array.isArray(result.pendingProposals) ? result.pendingProposals : []);
/** @type {typeof import("./result.js").getEmittedEvents} */
export const getEmittedEvents = (result) => (isEnvelope(result) ? result.emittedEvents : undefined);
/** @type {typeof import("./result.js").withPendingProposals} */
export function withPendingProposals(result, pendingProposals) {
  const events = getEmittedEvents(result);
  return {
    kind: KIND,
    content: getToolContent(result),
    pendingProposals: [...pendingProposals],
    ...(events === undefined ? {} : { emittedEvents: events }),
  };
}
/** @type {typeof import("./result.js").withEmittedEvents} */
export function withEmittedEvents(result, emittedEvents) {
  return { kind: KIND, content: getToolContent(result), pendingProposals: getPendingProposals(result), emittedEvents: [...emittedEvents] };
}
/** @type {typeof import("./result.js").makeProposal} */
export function makeProposal(ctx, nowIso, type, payload) {
  return {
    id: crypto.randomUUID(),
    type,
    source: { pluginId: ctx.pluginId, runtimeId: ctx.runtimeId ?? ctx.pluginId },
    turnId: ctx.turnId,
    sessionId: ctx.sessionId,
    payload,
    timestamp: nowIso,
  };
}
