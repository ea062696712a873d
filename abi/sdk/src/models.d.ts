import type { JsonSchema, JsonValue } from "./json.js";
import type { MediaRef } from "./proposals.js";

export interface ModelUsage {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens?: number;
  cacheWriteInputTokens?: number;
}
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "error" | "other";
export interface ModelMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: unknown;
}
export interface GenerateOptions {
  /** Which configured model; the story's when left out. */
  presetId?: string;
  prompt?: string;
  system?: string;
  messages?: ModelMessage[];
  defaults?: { reasoningEffort?: "disabled"; toolChoice?: string };
  /** Only lowers the budget the player set. */
  maxOutputTokens?: number;
  providerRequestMetadata?: Record<string, JsonValue>;
  signal?: AbortSignal;
}
export interface GenerateResult {
  finishReason: FinishReason;
  usage: ModelUsage;
  reasoningContent?: string;
  model?: string;
  provider?: string;
}
export interface GenerateTextOptions extends GenerateOptions {
  providerOptions?: Record<string, unknown>;
  responseFormat?: { type: "text" } | { type: "json_schema"; schema: JsonSchema };
}
export interface GenerateObjectOptions extends GenerateOptions {
  /** A JSON Schema or a zod schema. */
  schema: object;
}
export interface ResolvedSlot {
  presetId: string;
  provider: string;
  protocol: string;
  baseUrl?: string;
  apiKey?: string;
  headers?: Record<string, string>;
  model: string;
  tag: string;
  metadata?: Record<string, unknown>;
  /** Only when the model declares them. */
  limits?: { contextWindow: number; maxOutputTokens: number };
}
export type EvaluationQuestion =
  | { type: "boolean"; id: string; question: string }
  | { type: "choice"; id: string; question: string; choices: string[] }
  | { type: "score"; id: string; question: string; [field: string]: unknown };
export type EvaluationAnswer =
  | { type: "boolean"; probability: number }
  | { type: "choice"; choice: string; probabilities?: Record<string, number> }
  | { type: "score"; score: number; probabilities?: Record<string, number> };
/** `ctx.gateway`: the configured models. Members with `?` are absent where the host has no such model. */
export interface PluginServiceGateway {
  generateText(options: GenerateTextOptions): Promise<GenerateResult & { text: string }>;
  generateObject<T = any>(options: GenerateObjectOptions): Promise<GenerateResult & { object: T }>;
  resolveSlot?(options?: { presetId?: string; fallbackTag?: string }): ResolvedSlot | null;
  evaluate?(options: { state: unknown; questions: EvaluationQuestion[]; presetId?: string; signal?: AbortSignal }): Promise<{
    model: string;
    answers: Record<string, EvaluationAnswer>;
    usage: ModelUsage;
    [field: string]: unknown;
  }>;
}
export interface GeneratedMedia {
  refs: MediaRef[];
  warnings: string[];
  cached: boolean;
}
export interface PluginImages {
  generate(options: {
    prompt: string; negativePrompt?: string; size?: string; quality?: string; n?: number; background?: string;
    presetId?: string; metadata?: unknown; signal?: AbortSignal;
  }): Promise<GeneratedMedia>;
  isAvailable(presetId?: string): boolean;
}
export interface PluginSpeech {
  generate(options: { text: string; voice?: string; format?: string; presetId?: string; metadata?: unknown; signal?: AbortSignal }): Promise<GeneratedMedia>;
  isAvailable(presetId?: string): boolean;
}
export interface PluginMusic {
  generate(options: {
    prompt: string; lyrics?: string; instrumental?: boolean; durationSeconds?: number; format?: string;
    presetId?: string; metadata?: unknown; signal?: AbortSignal;
  }): Promise<GeneratedMedia>;
  isAvailable(presetId?: string): boolean;
}
export interface PluginMedia {
  read(ref: MediaRef | string): Promise<Uint8Array>;
  write(data: Uint8Array, options: { mime: string; metadata?: unknown }): Promise<MediaRef>;
}
export interface FetchInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal;
  maxRetries?: number;
}
/** As much of a `Response` as plugin code gets. */
export interface FetchResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
}
/** HTTP, to the origins of the package's `permissions.http` only. */
export interface PluginHttp {
  validateBaseUrl(url: string): { ok: boolean; reason?: string };
  fetchWithRetry(input: string | URL, init?: FetchInit): Promise<FetchResponse>;
}

/** What a wire is told of the endpoint. The key is for that endpoint only. */
export interface WireConfig {
  protocol?: string;
  baseUrl?: string;
  apiKey?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  cacheStrategy?: unknown;
  requestObservation?: unknown;
}
export interface TextWireParams {
  model: string;
  messages: ModelMessage[];
  tools?: unknown[];
  responseFormat?: { type: string; schema?: JsonSchema };
  instructionLocale?: "en" | "zh";
  maxOutputTokens?: number;
  providerRequestMetadata?: Record<string, JsonValue>;
}
export type TextWireEvent =
  | { type: "text-delta"; textDelta: string }
  | { type: "reasoning-delta"; textDelta: string }
  | { type: "tool-argument-delta"; [field: string]: unknown }
  | { type: "tool-call"; [field: string]: unknown }
  /** The last one. */
  | { type: "done"; finishReason: string; usage?: ModelUsage; [field: string]: unknown };
export interface PluginTextWire {
  id: string;
  label?: string;
  generateText(config: WireConfig, params: TextWireParams, context?: unknown): Promise<{ text: string; finishReason: string; usage?: ModelUsage; [field: string]: unknown }>;
  streamText(config: WireConfig, params: TextWireParams, context?: unknown): AsyncIterable<TextWireEvent>;
  listModels?(config: WireConfig, signal?: AbortSignal): Promise<string[]>;
}
export interface PluginImageWire {
  id: string;
  generate(config: WireConfig, params: any, context?: unknown): Promise<unknown>;
}
export interface PluginSpeechWire {
  id: string;
  synthesize(config: WireConfig, params: any, context?: unknown): Promise<unknown>;
}
export interface PluginTranscriptionWire {
  id: string;
  transcribe(config: WireConfig, params: any, context?: unknown): Promise<unknown>;
}
export interface PluginMusicWire {
  id: string;
  compose(config: WireConfig, params: any, context?: unknown): Promise<{ audio: { mimeType: string; data: Uint8Array | string }; usage?: unknown; warnings?: string[] }>;
}
/** What `registerWires` takes. */
export interface PluginWires {
  text?: PluginTextWire[];
  image?: PluginImageWire[];
  speech?: PluginSpeechWire[];
  transcription?: PluginTranscriptionWire[];
  music?: PluginMusicWire[];
}
