import type { EmittedEvent, Proposal, ProposalPayloads, ProposalType, ToolResult } from "./proposals.js";
/** The content of a tool result; a plain value is its own content. */
export function getToolContent<T>(result: T | ToolResult<T>): T;
/** The proposals of a tool result, or none. */
export function getPendingProposals(result: unknown): Proposal[];
/** The events of a tool result, or undefined. */
export function getEmittedEvents(result: unknown): EmittedEvent[] | undefined;
/** A new envelope with these proposals; other channels are kept. */
export function withPendingProposals<T>(result: T | ToolResult<T>, proposals: readonly Proposal[]): ToolResult<T>;
/** A new envelope with these events; other channels are kept. */
export function withEmittedEvents<T>(result: T | ToolResult<T>, events: readonly EmittedEvent[]): ToolResult<T>;
/** A proposal envelope. */
export function makeProposal<T extends ProposalType>(
  ctx: { pluginId: string; runtimeId?: string; turnId: string; sessionId: string }, nowIso: string, type: T, payload: ProposalPayloads[T],
): Proposal<T>;
