export interface PromptSegment {
  id: string;
  content: string;
  position: "system" | "pre-history" | "post-history" | { depth: number };
  role?: "system" | "user" | "assistant";
  audience?: "all" | "story" | "self" | { contract: string };
  volatility?: "stable" | "session" | "turn";
  order?: number;
}
export interface HistoryMessage {
  id: string;
  role: string;
  content: string;
  [field: string]: unknown;
}
export interface ExtensionPointInput {
  "prompt.segment@1": { turnId: string; playerMessage: string };
  "prompt.history-transform@1": { messages: HistoryMessage[]; turnId: string };
  "ui.slot@1": { slot: string; key?: string; previous: unknown; events: { topic: string; data: unknown; turnId: string; pluginId?: string }[] };
  "media.image-flow@1": Record<string, never>;
  "session.world-context@1": Record<string, never>;
  "history.compact@2": { messages: HistoryMessage[]; existingSummaries: unknown[]; contextWindow: number; inputWindow: number; estimatedTokens: number; locale: string; summaryBudget: { maxTokens: number; maxSegmentTokens: number; maxSegments: number } };
}
export interface ExtensionPointOutput {
  "prompt.segment@1": PromptSegment[];
  "prompt.history-transform@1": { messages: HistoryMessage[] };
  "ui.slot@1": Record<string, unknown> | null;
  "media.image-flow@1": { pluginId?: string; entryRuntimeId: string; assetRuntimeIds: string[] };
  "session.world-context@1": { schema?: unknown; entries?: unknown[]; dimensions?: unknown; dimensionProviderPluginId?: string; dimensionRecovery?: { editorRuntimeId: string; trackerRuntimeId: string } };
  "history.compact@2": { summaries: { messageIds: string[]; replacesSummaryIds: string[]; content: string; focusSections: unknown[]; truncated?: boolean }[]; deferred?: { reason: string } } | null;
}
export type ExtensionPointId = keyof ExtensionPointInput;
export const EXTENSION_POINTS: Readonly<Record<ExtensionPointId, Readonly<{ mode: "collect" | "pipeline" | "single"; timeoutMs: number; onError: "skip" | "fail-turn" }>>>;
export function isExtensionPoint(id: string): id is ExtensionPointId;
