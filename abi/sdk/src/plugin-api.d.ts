import type { z } from "zod";
import type { ExtensionPointId, ExtensionPointInput, ExtensionPointOutput } from "./extension-points.js";
import type { ToolDefinition, ToolModule, ToolContext, ToolResult, Proposal, RandomSource } from "./index.js";

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

export interface Toolkit {
  tool<P extends z.ZodType>(definition: ToolDefinition<P>): ToolModule<P>;
  z: typeof z;
  shortId(prefix: string, label: string, sessionId?: string, random?: RandomSource): string;
  shortIdBatch(prefix: string, labels: string[], sessionId?: string, random?: RandomSource): string[];
  withPendingProposals<T>(content: T | ToolResult<T>, proposals: Proposal[]): ToolResult<T>;
}
export interface Parser<T> {
  parse(value: unknown): T;
}
export interface ServiceClient {
  discover(contract: string): Promise<{ pluginId: string; name: string; contract: string; description?: string }[]>;
  call(
    target: { pluginId: string; name: string; contract: string; input: unknown } | { contract: string; input: unknown },
    options?: { signal?: AbortSignal; timeoutMs?: number },
  ): Promise<unknown>;
}
export interface ServiceDefinition<I, O> {
  name: string;
  contract: string;
  description?: string;
  access?: "write";
  modelFacing?: boolean;
  input: Parser<I>;
  output: Parser<O>;
  handler(input: I, ctx: ServiceContext): O | Promise<O>;
}
export interface ServiceContext {
  callerPluginId: string;
  signal: AbortSignal;
  services: ServiceClient;
}
export type HookEvent =
  | "SessionStart" | "TurnStart" | "PreCompaction" | "PostCompaction" | "PreSchedule" | "PreRuntime" | "PostContextAssembly"
  | "PreLLMCall" | "PostLLMResponse" | "PreToolUse" | "PostToolUse" | "PostRuntime" | "PreStateCommit" | "PostStateCommit"
  | "TurnStop" | "SessionEnd";
export interface HookContext {
  event: HookEvent;
  sessionId: string;
  turnId: string;
  locale: string;
  pluginId?: string;
  runtimeId?: string;
  activePluginIds: Set<string>;
  getOwnSettings(): Readonly<Record<string, JsonValue>>;
  signal: AbortSignal;
}
export type HookResult = void | { action: "continue"; replace?: Record<string, unknown> } | { action: "abort"; reason: string };
export interface HookOptions {
  match?(payload: unknown): boolean;
  timeoutMs?: number;
  enforce?: "pre" | "normal" | "post";
}
export interface RpcContext extends ToolContext {
  action?: string;
}
export type FormIssue = string | { field?: string; message: string };
export interface PluginAPI {
  readonly pluginId: string;
  readonly signal: AbortSignal;
  readonly toolkit: Toolkit;
  readonly http: {
    validateBaseUrl(url: string): { ok: boolean; reason?: string };
    fetchWithRetry(input: string | URL, init?: { maxRetries?: number; signal?: AbortSignal }): Promise<unknown>;
  };
  onDispose(dispose: () => void | Promise<void>): void;
  registerTool(module: ToolModule<z.ZodType>): void;
  registerService<I, O>(definition: ServiceDefinition<I, O>): void;
  registerRpc(
    action: string,
    handler: (payload: any, ctx: RpcContext) => unknown,
    options?: { description?: string; trustLevel?: "builtin" | "community" },
  ): void;
  registerFormValidator(
    name: string,
    validator: (values: Record<string, unknown>, data: unknown, ctx: { locale: string; messages?: unknown }) => undefined | FormIssue | FormIssue[],
  ): void;
  registerWires(wires: Partial<Record<"image" | "speech" | "transcription" | "music" | "text", ({ id: string } & Record<string, unknown>)[]>>): void;
  provideExtension<P extends ExtensionPointId>(
    point: P,
    id: string,
    definition: { handler(input: ExtensionPointInput[P], ctx: any): ExtensionPointOutput[P] | Promise<ExtensionPointOutput[P]> },
  ): void;
  on(event: HookEvent, handler: (ctx: HookContext, payload: any) => HookResult | Promise<HookResult>, options?: HookOptions): void;
}
export type PluginEntryFactory = (covel: PluginAPI) => void | Promise<void>;
export function definePlugin(factory: PluginEntryFactory): PluginEntryFactory;
