const KIND = "covel.tool-result";
const isEnvelope = (value) => value !== null && typeof value === "object" && value.kind === KIND && "content" in value;

/** The content of a tool result; a plain value is its own content. */
export const getToolContent = (result) => (isEnvelope(result) ? result.content : result);
/** The proposals of a tool result, or none. */
export const getPendingProposals = (result) => (isEnvelope(result) && Array.isArray(result.pendingProposals) ? result.pendingProposals : []);
/** The events of a tool result, or undefined. */
export const getEmittedEvents = (result) => (isEnvelope(result) ? result.emittedEvents : undefined);
/** A new envelope with these proposals; other channels are kept. */
export function withPendingProposals(result, pendingProposals) {
  const events = getEmittedEvents(result);
  return {
    kind: KIND,
    content: getToolContent(result),
    pendingProposals: [...pendingProposals],
    ...(events === undefined ? {} : { emittedEvents: events }),
  };
}
/** A new envelope with these events; other channels are kept. */
export function withEmittedEvents(result, emittedEvents) {
  return { kind: KIND, content: getToolContent(result), pendingProposals: getPendingProposals(result), emittedEvents: [...emittedEvents] };
}
/** A proposal envelope. */
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
