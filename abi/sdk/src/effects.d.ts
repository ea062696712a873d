import type { JsonSchema } from "./json.js";
import type {
  AssetGeneration, CharacterUpsert, EmittedEvent, DataOperation, Interaction, LorebookEntry, StatePatch, ToolResult, UiBlock,
} from "./proposals.js";

export interface JobStatus {
  jobId?: string;
  state?: "queued" | "running" | "progress" | "waiting-input" | "succeeded" | "failed" | "cancelled";
  /** 0 to 1. */
  progress?: number;
  message?: string;
  data?: unknown;
  sequence?: number;
}
export interface Diagnostic {
  code: string;
  message: string;
  data?: unknown;
}
export interface Notification {
  level: "info" | "success" | "warning" | "error";
  title: string;
  message?: string;
}
/** Effects that any outcome may have. */
export interface ObservabilityEffects {
  jobStatus?: JobStatus[];
  diagnostics?: Diagnostic[];
}
/** What a success writes; kept or dropped with the rest of its runtime. */
export interface Effects extends ObservabilityEffects {
  events?: EmittedEvent[];
  pluginData?: ({ namespace: string; key: string; value: unknown } | { namespace: string; key: string; ops: DataOperation[] })[];
  statePatches?: StatePatch[];
  interactions?: Interaction[];
  ui?: (UiBlock | { type: string; [field: string]: unknown })[];
  assetGenerations?: AssetGeneration[];
  notifications?: Notification[];
  characters?: CharacterUpsert[];
  lorebook?: LorebookEntry[];
}
export interface SuccessResult<V = unknown> {
  outcome: "success";
  /** The business value: any JSON. */
  value?: V;
  effects?: Effects;
  /** Of a setup runtime. */
  completion?: "done" | "pending";
}
export interface SkippedResult {
  outcome: "skipped";
  skipReason: string;
  effects?: ObservabilityEffects;
}
export interface FailedResult {
  outcome: "failed";
  error: string | { message: string; code?: string };
  effects?: ObservabilityEffects;
}
export interface SuspendedResult {
  outcome: "suspended";
  reason: string;
  /** Of the answer it waits for. */
  resumeSchema?: JsonSchema;
}
/** What the handler of a function runtime answers. */
export type HandlerResult<V = unknown> = SuccessResult<V> | SkippedResult | FailedResult | SuspendedResult;
export type HandlerAnswer<V = unknown> = HandlerResult<V> | ToolResult<HandlerResult<V>>;
/** What an agent's guard answers: `skip: true` spares the model, the other members are then the output. */
export type GuardResult = { skip: false } | { skip: true; [field: string]: unknown };
export type GuardAnswer = GuardResult | ToolResult<GuardResult>;
