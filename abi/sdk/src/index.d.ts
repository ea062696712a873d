import type { z } from "zod";

export interface RandomSource {
  int(min: number, max: number): number;
}
export interface Proposal {
  id: string;
  type: string;
  source: { pluginId: string; runtimeId: string };
  turnId: string;
  sessionId: string;
  payload: any;
  timestamp: string;
}
export interface EmittedEvent {
  topic: string;
  data: unknown;
}
export interface ToolResult<T> {
  kind: "covel.tool-result";
  content: T;
  pendingProposals: Proposal[];
  emittedEvents?: EmittedEvent[];
}
export interface ToolContext {
  readonly sessionId: string;
  readonly turnId: string;
  readonly pluginId: string;
  readonly runtimeId: string;
  readonly locale?: string;
  readonly messages?: unknown;
  readonly logicalTurn?: number;
  readonly turnNumber?: number;
  readonly signal?: AbortSignal;
  readonly random?: RandomSource;
  readonly store?: Record<string, (...args: any[]) => Promise<any>>;
  readonly world?: Record<string, any>;
  readonly services?: unknown;
  readonly [field: string]: unknown;
}
export interface ToolDefinition<P extends z.ZodType> {
  name: string;
  description: string;
  parameters: P;
  execute(params: z.output<P>, ctx: ToolContext): unknown;
}
export interface ToolModule<P extends z.ZodType> {
  readonly _type: "covel-tool";
  readonly name: string;
  readonly description: string;
  readonly parametersSchema: P;
  readonly jsonSchema: Record<string, unknown>;
  execute(params: unknown, ctx: ToolContext): Promise<unknown>;
}
export class ToolValidationError extends Error {
  readonly code: "VALIDATION_ERROR";
  readonly details: { path: string; message: string }[];
  constructor(details: { path: string; message: string }[]);
}
export function tool<P extends z.ZodType>(definition: ToolDefinition<P>): ToolModule<P>;

export function getToolContent<T>(result: T | ToolResult<T>): T;
export function getPendingProposals(result: unknown): Proposal[];
export function getEmittedEvents(result: unknown): EmittedEvent[] | undefined;
export function withPendingProposals<T>(result: T | ToolResult<T>, proposals: Proposal[]): ToolResult<T>;
export function withEmittedEvents<T>(result: T | ToolResult<T>, events: EmittedEvent[]): ToolResult<T>;
export function makeProposal(
  ctx: { pluginId: string; runtimeId?: string; turnId: string; sessionId: string }, nowIso: string, type: string, payload: unknown,
): Proposal;

export function shortId(prefix: string, label?: string, sessionId?: string, random?: RandomSource): string;
export function shortIdBatch(prefix: string, labels: string[], sessionId?: string, random?: RandomSource): string[];
export function wordSlug(label: string): string;
export function wordId(prefix: string, label: string, taken?: Iterable<string>): string;

export type JsonRead = { ok: true; value: any } | { ok: false; reason: string; near: string };
export function parseJsonText(text: string, options?: { field?: boolean }): JsonRead;

export function normalizeRequiredString(value: unknown, name?: string): string;
export function normalizeOptionalString(value: unknown): string | undefined;
export function normalizeOptionalNumber(value: unknown): number | undefined;
export function normalizeOptionalInteger(value: unknown): number | undefined;
export function splitList(value: unknown): string[];
export function compactRecord<T extends object>(value: T, options?: { dropEmptyArrays?: boolean }): Partial<T>;
export function readManualEntity(payload: any, entity: string, fromForm: (form: any) => unknown): unknown;
export function assertEntityEnvelope<T>(value: T, options?: { name?: string; idPattern?: RegExp; maxLength?: number }): T;
export function abortSignalWithTimeout(signal: AbortSignal | undefined | null, ms: number): AbortSignal;
export function modelFacingJson(value: unknown): any;
export function estimateTokens(text: string): number;
export const FRAMEWORK_TOOL_NAMES: readonly string[];
export function overlayPluginDataValue(
  proposals: Proposal[], pluginId: string, namespace: string, key: string, stored: unknown,
): { deleted: boolean; value: unknown };
export function overlayPluginDataRows<R extends { namespace: string; key: string }>(proposals: Proposal[], pluginId: string, rows: R[]): Map<string, R>;

export type I18nText = string | ({ en: string } & Record<string, string>);
export const LOCALES: readonly { readonly locale: string; readonly name: string }[];
export function findLocale(locale: string): { locale: string; name: string } | undefined;
export function instructionLocaleFor(locale: string | undefined): "en" | "zh";
export function pickLocaleText<T>(locale: string | undefined, zh: T, en: T): T;
export function resolveI18nText(text: I18nText | undefined, locale: string | undefined): string | undefined;
export function resolveI18nDeep(value: unknown, locale: string | undefined): any;
export function translate(ctx: { messages?: any }, text: string, params?: Record<string, unknown>): string;
export function labelText(ctx: { messages?: any }, text: string): I18nText;

export interface Character {
  id: string;
  name: string;
  type: string;
  aliases?: string[];
  description?: string;
  fields?: Record<string, unknown>;
  version?: number;
}
export interface Seat {
  id: string;
  primary?: boolean;
  currentCharacterId?: string;
  characterIds?: string[];
}
export type CharacterResult<C> = { status: "found"; character: C } | { status: "ambiguous"; candidates: C[] } | { status: "missing"; closest: C[] };
export function characterNameKey(name: string): string;
export function characterLabel(character: Pick<Character, "name" | "aliases">): string;
export function mergeCharacterAliases(name: string, ...lists: string[][]): string[];
export function findCharacterAliasConflict<C extends Character>(characters: C[], id: string, aliases: string[]): { alias: string; owner: C } | undefined;
export function mentionedCharacterIds(text: string, characters: Pick<Character, "id" | "name" | "aliases">[]): Set<string>;
export function resolveCharacter<C extends Character>(characters: C[], query: string, options?: { partial?: boolean }): CharacterResult<C>;
export function describeUnresolvedCharacter<C extends Character>(query: string, result: CharacterResult<C>, characters?: C[]): string;
export function seatCharacterIds(seat: Seat | undefined): string[];
export function primarySeat(seats: Seat[] | undefined): Seat | undefined;
export function actingCharacterOf<C extends Character>(
  actions: { characterId?: string; actorId?: string }[] | undefined, characters: C[] | undefined, seats: Seat[] | undefined,
): C | undefined;

export function searchTerms(text: string): string[];
export function rankTexts(query: string, texts: string[]): { index: number; score: number; coverage: number; matched: string[] }[];
export function searchExcerpt(text: string, terms: string[], options?: { before?: number; max?: number }): string;
export function appendSummaryEntries<T>(previous: T[] | undefined, entries: T[]): T[];
