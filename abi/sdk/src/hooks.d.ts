import type { Settings } from "./contexts.js";
import type { ModelMessage } from "./models.js";
import type { Proposal } from "./proposals.js";

/** A runtime as hooks see it: what its manifest says. */
export interface RuntimeManifest {
  readonly name: string;
  readonly [field: string]: any;
}
export interface HookToolCall {
  readonly id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}
export interface HookRuntimeResult {
  runtimeId: string;
  status: "success" | "skipped" | "failed" | "suspended";
  [field: string]: any;
}
export interface HookModelResponse {
  content?: string;
  toolCalls?: HookToolCall[];
  finishReason?: string;
  [field: string]: any;
}
/** What each event tells its handlers: a private copy. */
export interface HookPayloads {
  SessionStart: { sessionId: string; worldId?: string };
  TurnStart: { playerMessage: string; activeRuntimes: any[] };
  PreCompaction: { messageCount: number };
  PostCompaction: { compacted: boolean; summaryId?: string };
  PreSchedule: { triggered: RuntimeManifest[] };
  PreRuntime: { manifest: RuntimeManifest; input: any };
  PostContextAssembly: { systemPrompt: string; messages: ModelMessage[]; outputKind?: string; promptTemplate?: string; inputSlots?: any; characters?: any };
  PreLLMCall: { messages: ModelMessage[]; model: string; tools: any[]; stream?: boolean };
  PostLLMResponse: { response: HookModelResponse; messages: ModelMessage[] };
  PreToolUse: { toolCall: HookToolCall };
  PostToolUse: { toolCall: HookToolCall; result: any };
  PostRuntime: { result: HookRuntimeResult };
  PreStateCommit: { proposal: Proposal };
  PostStateCommit: { proposal: Proposal; result: any };
  TurnStop: { runtimeResults: HookRuntimeResult[]; durationMs: number };
  SessionEnd: { sessionId: string; reason: "ended" | "deleted" };
}
export type HookEvent = keyof HookPayloads;
/** What `replace` may hold on each event; on the others it is not read. */
export interface HookReplacements {
  PreSchedule: { triggered?: RuntimeManifest[] };
  PostContextAssembly: { systemPrompt?: string; messages?: ModelMessage[] };
  PreLLMCall: { messages?: ModelMessage[]; model?: string; tools?: any[]; stream?: false };
  /** A `correction` sends the draft back to the model; the third in a run fails it. */
  PostLLMResponse: { response?: HookModelResponse; correction?: string };
  PreToolUse: { toolCall?: { name?: string; arguments?: string } };
  PostToolUse: { result?: any; terminate?: boolean };
  PostRuntime: { result?: Partial<HookRuntimeResult> };
  PreStateCommit: { proposal?: { payload: any } };
}
/** Events whose `abort` stops something, and whose failing handlers count as one. */
export type GuardEvent = "TurnStart" | "PreCompaction" | "PreRuntime" | "PreToolUse" | "PreStateCommit";
export type HookContinue<E extends HookEvent> = E extends keyof HookReplacements
  ? { action: "continue"; replace?: HookReplacements[E] }
  : { action: "continue"; replace?: undefined };
/** On events that are no guard an abort changes nothing and ends the chain. */
export type HookAbort = { action: "abort"; reason: string };
/** Nothing means: go on. */
export type HookResult<E extends HookEvent = HookEvent> = void | undefined | null | HookContinue<E> | HookAbort;
export interface HookContext<E extends HookEvent = HookEvent> {
  readonly event: E;
  readonly sessionId: string;
  /** Empty for `SessionStart` and `SessionEnd`. */
  readonly turnId: string;
  readonly locale: string;
  /** The runtime it is about, with its package: both or neither. */
  readonly pluginId?: string;
  readonly runtimeId?: string;
  readonly activePluginIds: ReadonlySet<string>;
  getOwnSettings(): Settings;
  readonly signal: AbortSignal;
}
export type HookHandler<E extends HookEvent = HookEvent> = (ctx: HookContext<E>, payload: HookPayloads[E]) => HookResult<E> | Promise<HookResult<E>>;
export interface HookOptions<E extends HookEvent = HookEvent> {
  /** Gets a copy of its own; the handler runs when it says true. */
  match?(payload: HookPayloads[E]): boolean;
  /** Milliseconds; 5000 when left out. */
  timeoutMs?: number;
  /** As declared in `contributes.hooks`; `normal` when left out. */
  enforce?: "pre" | "normal" | "post";
}
