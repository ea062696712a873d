import type { HandlerAnswer, GuardAnswer, JobStatus } from "./effects.js";
import type { JsonObject, JsonValue, MessageCatalogue } from "./json.js";
import type { PluginHttp, PluginImages, PluginMedia, PluginMusic, PluginServiceGateway, PluginSpeech } from "./models.js";
import type { DataOperation, Proposal } from "./proposals.js";
import type { ServiceClient } from "./services.js";
import type { PlayerAction, WorldView } from "./world.js";

/** Draws that a seeded session makes again. */
export interface RandomSource {
  /** A whole number, `min <= n < max`. */
  int(min: number, max: number): number;
}
/** Settings of a package: defaults, then the world's, then the player's. */
export type Settings = Readonly<Record<string, any>>;
export interface DataRow<T = any> {
  key: string;
  value: T;
  createdAt: string;
  updatedAt: string;
}
/** Own records; what was written earlier in this execution shows. */
export interface PluginDataReader {
  /** The value, or null. */
  get<T = any>(namespace: string, key: string): Promise<T | null>;
  /** In creation order. */
  list<T = any>(namespace: string): Promise<DataRow<T>[]>;
}
/** Own records, written when the execution commits. */
export interface PluginDataWriter extends PluginDataReader {
  set(namespace: string, key: string, value: unknown): Promise<void>;
  delete(namespace: string, key: string): Promise<void>;
  /** Applies to the newest value at commit; an operation that does not hold there is a `conflict`. */
  update(namespace: string, key: string, ops: DataOperation[]): Promise<void>;
}
export interface Logger {
  debug(message: string, meta?: unknown): void;
  info(message: string, meta?: unknown): void;
  warn(message: string, meta?: unknown): void;
  error(message: string, meta?: unknown): void;
}
export interface Progress {
  /** Shown while it runs; not stored. */
  report(status: JobStatus): void;
}
export interface PlayerInput {
  id: string;
  turnId: string;
  formId: string;
  values: Record<string, any>;
  sessionId?: string;
  createdAt?: string;
}
export interface TurnMessage {
  id: string;
  turnId: string;
  sourceType: "player" | "system" | "runtime";
  sourcePluginId?: string;
  sourceRuntimeId?: string;
  role: string;
  content: string;
  createdAt: string;
  compacted?: boolean;
  [field: string]: unknown;
}
/** `ctx.store`: what has been committed, of this session and this package. */
export interface StoreReader {
  getSession(): Promise<any>;
  listPlayerInputs(): Promise<PlayerInput[]>;
  /** The newest, oldest first. */
  listTurnMessages(limit?: number): Promise<TurnMessage[]>;
  /** Pages through all of them, oldest first; at most 500 at once. */
  readTurnMessages(options?: { after?: string; limit?: number }): Promise<{ messages: TurnMessage[]; cursor?: string; hasMore: boolean }>;
  getPluginData<T = any>(namespace: string, key: string): Promise<{ key: string; value: T } | null>;
  listPluginData<T = any>(namespace: string): Promise<{ key: string; value: T }[]>;
}
/** What an action may do to the store: at once, and it stays. */
export interface ActionStore extends StoreReader {
  savePlayerInput(input: { id: string; turnId: string; formId: string; values: Record<string, unknown>; createdAt: string }): Promise<void>;
  setPluginData(record: { namespace: string; key: string; value: unknown; createdAt?: string; updatedAt?: string }): Promise<void>;
}
/** Where a value comes from. */
export interface ValueSource {
  pluginId: string;
  runtimeId: string;
  resultId: string;
}
export interface OneInput<T = any> {
  cardinality: "one";
  value: T;
  source: ValueSource;
}
export interface AllInput<T = any> {
  cardinality: "all";
  items: { value: T; source: ValueSource }[];
}
export type InputSlot<T = any> = OneInput<T> | AllInput<T>;
/** Inputs by the name their manifest gives them; an optional one may be absent. */
export type InputSlots = { [name: string]: InputSlot | undefined };
export interface Activation {
  source: "stage" | "event" | "manual" | string;
  /** Does it run outside its turn, as a job? */
  detached: boolean;
  payload: any;
}
/** Who is called, where. */
export interface CallIdentity {
  readonly sessionId: string;
  readonly turnId: string;
  readonly pluginId: string;
  readonly runtimeId: string;
}

/** What a guard gets: reads, and nothing that writes. `I`: its inputs, `S`: its settings. */
export interface GuardContext<I extends { [K in keyof I]: InputSlot | undefined } = any, S = Settings> extends CallIdentity {
  readonly locale: string;
  readonly messages?: MessageCatalogue;
  /** Committed player turns of the main loop, and one. */
  readonly logicalTurn: number;
  readonly playerMessage: string;
  readonly playerActions: readonly PlayerAction[];
  readonly inputs: I;
  readonly userSettings: S;
  readonly activation: Activation;
  readonly triggerEvent?: { topic: string; data: any };
  readonly manualPayload?: any;
  readonly resumeData?: any;
  readonly resumedFromSuspensionId?: string;
  readonly pluginData: PluginDataReader;
  readonly store: StoreReader;
  readonly world: WorldView;
  readonly services: ServiceClient;
  readonly random: RandomSource;
  readonly logger: Logger;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  getOwnSettings(): Settings;
}
/** What the handler of a function runtime gets. Members with `?` depend on how it was started or on what the host has. */
export interface FunctionContext<I extends { [K in keyof I]: InputSlot | undefined } = any, S = Settings> extends Omit<GuardContext<I, S>, "pluginData"> {
  readonly pluginData: PluginDataWriter;
  readonly tools: {
    /** Calls a tool of `function.tools`. A failed call fails the runtime, caught or not. */
    call<T = any>(name: string, args?: JsonObject): Promise<T>;
  };
  readonly gateway: PluginServiceGateway;
  readonly session?: { readonly lastPlayerInput: PlayerInput | null };
  readonly exports?: { [name: string]: InputSlot | undefined };
  readonly utils?: PluginHttp;
  readonly images?: PluginImages;
  readonly speech?: PluginSpeech;
  readonly music?: PluginMusic;
  readonly media?: PluginMedia;
  readonly recursionDepth?: number;
  /** A turn inside this one: same session, same commit. */
  recursiveCall?(delta: { manualTrigger?: { runtimeId: string; payload?: unknown }; playerMessage?: string }, options?: { reason?: string }): Promise<any>;
}
/** What a plugin's tool gets. */
export interface ToolContext extends CallIdentity {
  readonly locale?: string;
  readonly messages?: MessageCatalogue;
  readonly logicalTurn?: number;
  /** Recorded player messages, those of setup too. */
  readonly turnNumber?: number;
  readonly signal?: AbortSignal;
  readonly random?: RandomSource;
  /** Reads; earlier writes of this execution show. Absent in a host without a store. */
  readonly store?: StoreReader;
  readonly world?: WorldView;
  readonly services?: ServiceClient;
  readonly pluginData?: PluginDataReader;
  readonly logger?: Logger;
  readonly progress?: Progress;
  readonly inputs?: InputSlots;
  readonly inputSlots?: InputSlots;
  readonly upstreamProposals?: readonly Proposal[];
  readonly pendingProposals?: readonly Proposal[];
  readonly emittedEventTopics?: readonly string[];
  getOwnSettings?(): Settings;
}
/** What the handler of an action or command gets. */
export interface RpcContext {
  readonly sessionId: string;
  readonly pluginId: string;
  readonly action?: string;
  readonly runtimeId?: string;
  readonly store: ActionStore;
  readonly locale?: string;
  readonly messages?: MessageCatalogue;
  readonly services: ServiceClient;
  readonly random: RandomSource;
  readonly logger?: Logger;
  /** Aborted when its time is up; the store is closed then. */
  readonly signal: AbortSignal;
  /** Set when a player's command called it. */
  readonly command?: {
    command: string;
    canonical: string;
    raw: string;
    argv: string[];
    args: Record<string, any>;
    invocationId?: string;
    commandId: string;
    source: "composer" | "plugin-ui";
  };
  readonly environment?: {
    capturedAt: string;
    session?: { id: string; worldId?: string; status?: string; phase?: string; locale?: string };
    activeRuntimes?: { id: string; pluginId: string; runtimeType: string; outputKind?: string; stage?: string; outputContract?: string; model?: JsonValue }[];
  };
  emit?(event: { type: string; data?: unknown }): void;
  getOwnSettings(): Settings;
}
/** What an action is given: the page's payload; a command's arguments are `payload.args`. */
export type RpcHandler<P = any> = (payload: P, ctx: RpcContext) => unknown;
/** The default export of a function runtime's module. */
export type FunctionHandler<I extends { [K in keyof I]: InputSlot | undefined } = any, S = Settings, V = unknown> = (
  ctx: FunctionContext<I, S>,
) => HandlerAnswer<V> | Promise<HandlerAnswer<V>>;
/** The default export of an agent's guard. */
export type GuardHandler<I extends { [K in keyof I]: InputSlot | undefined } = any, S = Settings> = (
  ctx: GuardContext<I, S>,
) => GuardAnswer | Promise<GuardAnswer>;
