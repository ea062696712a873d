import type { JsonSchema, MessageCatalogue } from "./json.js";
import type { PluginServiceGateway, PluginHttp } from "./models.js";
import type { Logger, PluginDataReader, PluginDataWriter, RandomSource, Settings } from "./contexts.js";
import type { WorldView } from "./world.js";

export interface ServiceOffer {
  pluginId: string;
  name: string;
  contract: string;
  description?: string;
}
/** One provider by its full name, or the only one of a contract. */
export type ServiceTarget =
  | { pluginId: string; name: string; contract: string; input: unknown }
  | { contract: string; input: unknown; pluginId?: undefined; name?: undefined };
export interface ServiceCallOptions {
  /** Milliseconds, 1 to 2147483647, waiting included; expiry throws an error named `TimeoutError`. */
  timeoutMs?: number;
  signal?: AbortSignal;
}
/** `ctx.services`. */
export interface ServiceClient {
  discover(contract: string): Promise<ServiceOffer[]>;
  call<O = any>(target: ServiceTarget, options?: ServiceCallOptions): Promise<O>;
}
/** Anything with `parse`: a zod schema, or an object of your own. */
export interface Parser<T> {
  parse(value: unknown): T;
}
export interface BaseServiceContext {
  /** The package whose code makes the call. */
  readonly callerPluginId: string;
  readonly sessionId: string;
  readonly locale?: string;
  readonly messages?: MessageCatalogue;
  readonly signal: AbortSignal;
  readonly services: ServiceClient;
  readonly random: RandomSource;
  readonly logger?: Logger;
  /** The same as `getOwnSettings()`. */
  readonly userSettings?: Settings;
  /** The world as the calling runtime sees it. */
  readonly world: WorldView;
  getOwnSettings(): Settings;
}
/** What the handler of a read service gets. */
export interface ServiceContext extends BaseServiceContext {
  readonly pluginData: PluginDataReader;
  readonly gateway?: PluginServiceGateway;
  readonly utils?: PluginHttp;
}
/** What the handler of a write service gets: no models and no HTTP, but the provider's own data to write. */
export interface WriteServiceContext extends BaseServiceContext {
  readonly turnId: string;
  readonly pluginData: PluginDataWriter;
}
interface BaseServiceDefinition<I, O> {
  /** Unique in its package. */
  name: string;
  /** `<name>@<major>`, as `contributes.services` declares it. */
  contract: string;
  description?: string;
  /** A model may call it; needs a description and an input with a JSON Schema. */
  modelFacing?: boolean;
  input: Parser<I>;
  /** Of the input, when it cannot be made from `input`. */
  inputSchema?: JsonSchema;
  output: Parser<O>;
}
export interface ReadServiceDefinition<I, O> extends BaseServiceDefinition<I, O> {
  access?: "read";
  handler(input: I, ctx: ServiceContext): O | Promise<O>;
}
export interface WriteServiceDefinition<I, O> extends BaseServiceDefinition<I, O> {
  access: "write";
  handler(input: I, ctx: WriteServiceContext): O | Promise<O>;
}
export type ServiceDefinition<I, O> = ReadServiceDefinition<I, O> | WriteServiceDefinition<I, O>;
