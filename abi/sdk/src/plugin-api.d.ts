import type { z } from "zod";
import type { RandomSource, RpcHandler } from "./contexts.js";
import type { ExtensionHandler, ExtensionPointId } from "./extension-points.js";
import type { HookEvent, HookHandler, HookOptions } from "./hooks.js";
import type { MessageCatalogue } from "./json.js";
import type { PluginHttp, PluginWires } from "./models.js";
import type { Proposal, ToolResult } from "./proposals.js";
import type { ReadServiceDefinition, WriteServiceDefinition } from "./services.js";
import type { AnyToolModule, ToolDefinition, ToolModule } from "./tool.js";

export type * from "./contexts.js";
export type * from "./effects.js";
export type * from "./hooks.js";
export type * from "./json.js";
export type * from "./models.js";
export type * from "./proposals.js";
export type * from "./services.js";
export type { AnyToolModule, ToolDefinition, ToolModule } from "./tool.js";
export type * from "./world.js";

/** `covel.toolkit`. Use this `z`: schemas of another copy of zod are refused. */
export interface Toolkit {
  tool<P extends z.ZodType>(definition: ToolDefinition<P>): ToolModule<P>;
  z: typeof z;
  shortId(prefix: string, label?: string, sessionId?: string, random?: RandomSource): string;
  shortIdBatch(prefix: string, labels: string[], sessionId?: string, random?: RandomSource): string[];
  withPendingProposals<T>(content: T | ToolResult<T>, proposals: readonly Proposal[]): ToolResult<T>;
}
/** What is wrong with a form: a text for the whole form, or for a field. */
export type FormIssue = string | { field?: string; message: string };
/** Plain and at once: it may not wait and has no context beyond the texts. */
export type FormValidator = (
  values: Record<string, any>,
  data: any,
  ctx: { locale: string; messages?: MessageCatalogue },
) => undefined | void | null | FormIssue | FormIssue[];
/** What an entry's factory gets. Registrations are taken while it runs, and must be what the manifest declares. */
export interface PluginAPI {
  readonly pluginId: string;
  /** Aborted when the activation ends or fails. */
  readonly signal: AbortSignal;
  readonly toolkit: Toolkit;
  readonly http: PluginHttp;
  /** Disposers run last registered first. */
  onDispose(dispose: () => void | Promise<void>): void;
  registerTool(module: AnyToolModule): void;
  registerService<I, O>(definition: WriteServiceDefinition<I, O>): void;
  registerService<I, O>(definition: ReadServiceDefinition<I, O>): void;
  registerRpc<P = any>(action: string, handler: RpcHandler<P>, options?: { description?: string; trustLevel?: "builtin" | "community" }): void;
  registerFormValidator(name: string, validator: FormValidator): void;
  registerWires(wires: PluginWires): void;
  provideExtension<P extends ExtensionPointId>(point: P, id: string, definition: { handler: ExtensionHandler<P> }): void;
  on<E extends HookEvent>(event: E, handler: HookHandler<E>, options?: HookOptions<E>): void;
}
/** The default export of an entry. */
export type PluginEntryFactory = (covel: PluginAPI) => void | Promise<void>;
/** Gives a factory its type; the value is the factory itself. */
export function definePlugin(factory: PluginEntryFactory): PluginEntryFactory;
