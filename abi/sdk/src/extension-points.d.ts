import type { PluginDataReader, Settings } from "./contexts.js";
import type { JsonValue, MessageCatalogue } from "./json.js";
import type { PluginHttp, PluginServiceGateway } from "./models.js";
import type { MediaRef } from "./proposals.js";
import type { ServiceClient } from "./services.js";
import type { Dimension, WorldView } from "./world.js";

export interface PromptSegment {
  id: string;
  content: string;
  position: "system" | "pre-history" | "post-history" | { depth: number };
  role?: "system" | "user" | "assistant";
  /** Whose prompts it goes into; `all` when left out. */
  audience?: "all" | "story" | "self" | { contract: string };
  /** How often it changes: where prompt caches are cut. */
  volatility?: "stable" | "session" | "turn";
  /** Lower first; 0 when left out. */
  order?: number;
}
export interface HistoryMessage {
  id: string;
  sessionId?: string;
  turnId?: string;
  sourceType?: "player" | "system" | "runtime";
  sourcePluginId?: string;
  sourceRuntimeId?: string;
  role: string;
  content: string;
  name?: string;
  order?: number;
  createdAt?: string;
  compactedAtTurnId?: string;
  metadata?: unknown;
  ui?: unknown;
  pendingInput?: unknown;
}
export interface HistorySummary {
  id: string;
  content: string;
  [field: string]: unknown;
}
/** Values of the slots of `ui.slot@1`. */
export interface UiSlotModels {
  "stage.backdrop@1": { sceneId?: string; name?: string; ref?: MediaRef | string; variant?: "day" | "night"; label?: string; preload?: (MediaRef | string)[] };
  "stage.cast@1": {
    actors: {
      characterId: string; displayName: string; type?: string; description?: string; active?: boolean; exiting?: boolean; visual?: unknown;
      position?: "left" | "center-left" | "center" | "center-right" | "right";
      transition?: "none" | "fade" | "slide-left" | "slide-right" | "dissolve";
    }[];
    retainWhenEmpty?: boolean;
  };
  "stage.dialogue@1": { turnId?: string; paragraphSpeakers: (string | { characterId: string; displayName: string } | null)[] };
  "stage.choices@1": { turnId?: string; scene?: string; recap?: string; decision?: string; choices: { id: string; text: string; label?: string }[] };
  "character.visual@1": { characters: { characterId: string; displayName?: string; avatar?: unknown; sprite?: unknown; visuals?: unknown[] }[] };
  "session.summary@1": { entries: SummaryEntry[] };
  "stage.music@1": { trackId?: string; title?: string; ref?: MediaRef | string; loop?: boolean; volume?: number; fadeMs?: number };
}
export type SummaryTone = "info" | "success" | "warning" | "danger";
export type SummaryEntry =
  | { id: string; label: unknown; kind: "text"; value: unknown; tone?: SummaryTone }
  | { id: string; label: unknown; kind: "meter"; value: number; max: number; min?: number; tone?: SummaryTone }
  | { id: string; label: unknown; kind: "list"; items: unknown[]; total?: number };
export type UiSlotModel = UiSlotModels[keyof UiSlotModels];
export interface UiSlotEvent {
  topic: string;
  data: any;
  turnId: string;
  pluginId?: string;
}
/** What each point hands to its providers. */
export interface ExtensionPointInput {
  "prompt.segment@1": { turnId: string; playerMessage: string };
  "prompt.history-transform@1": { messages: HistoryMessage[]; turnId: string };
  "ui.slot@1": { slot: string; key?: string; previous: any; events: UiSlotEvent[] };
  "media.image-flow@1": Record<string, never>;
  "session.world-context@1": Record<string, never>;
  "history.compact@2": {
    messages: HistoryMessage[];
    existingSummaries: HistorySummary[];
    locale: string;
    estimatedTokens: number;
    contextWindow: number;
    inputWindow: number;
    summaryBudget: { maxTokens: number; maxSegmentTokens: number; maxSegments: number };
  };
}
/** What each point takes from them. */
export interface ExtensionPointOutput {
  "prompt.segment@1": PromptSegment[];
  "prompt.history-transform@1": { messages: HistoryMessage[] };
  "ui.slot@1": UiSlotModel | null;
  "media.image-flow@1": { pluginId?: string; entryRuntimeId: string; assetRuntimeIds: string[] };
  "session.world-context@1": {
    schema?: Record<string, unknown>;
    entries?: Record<string, unknown>;
    dimensions?: Record<string, Dimension>;
    dimensionRecovery?: { editorRuntimeId: string; trackerRuntimeId: string };
    dimensionProviderPluginId?: string;
  };
  /** Null: nothing to compact. Who cannot do it throws. */
  "history.compact@2": {
    summaries: { messageIds: string[]; replacesSummaryIds: string[]; content: string; focusSections: JsonValue[]; truncated?: boolean }[];
    deferred?: { reason: string };
  } | null;
}
export type ExtensionPointId = keyof ExtensionPointInput;
/** What a provider gets: reads of its own package and of the session, nothing that writes. */
export interface ExtensionContext {
  readonly callerPluginId?: string;
  readonly sessionId: string;
  readonly turnId?: string;
  readonly locale: string;
  readonly messages?: MessageCatalogue;
  readonly signal: AbortSignal;
  /** Without `_hidden.*`. */
  readonly pluginData: PluginDataReader;
  readonly world: WorldView;
  readonly services: ServiceClient;
  readonly gateway?: PluginServiceGateway;
  readonly utils?: PluginHttp;
  getOwnSettings(): Settings;
}
/** The context of each point's handlers. */
export type ExtensionPointContext = { [P in ExtensionPointId]: ExtensionContext };
export type ExtensionHandler<P extends ExtensionPointId> = (
  input: ExtensionPointInput[P],
  ctx: ExtensionPointContext[P],
) => ExtensionPointOutput[P] | Promise<ExtensionPointOutput[P]>;
export interface ExtensionPointRules {
  readonly mode: "collect" | "pipeline" | "single";
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly onError: "skip" | "fail-turn";
}
/** The extension points of this host, with how their providers are called. */
export const EXTENSION_POINTS: Readonly<Record<ExtensionPointId, ExtensionPointRules>>;
/** Is this the current version of a point? */
export function isExtensionPoint(id: string): id is ExtensionPointId;
