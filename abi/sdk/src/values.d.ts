import type { Proposal } from "./proposals.js";
/** The trimmed text; throws when there is none. */
export function normalizeRequiredString(value: unknown, name?: string): string;
/** The trimmed text, or undefined. */
export function normalizeOptionalString(value: unknown): string | undefined;
/** The number, also of numeric text, or undefined. */
export function normalizeOptionalNumber(value: unknown): number | undefined;
/** The whole number, also of numeric text, or undefined. */
export function normalizeOptionalInteger(value: unknown): number | undefined;
/** Another name of `normalizeOptionalString`. */
export const optionalString: typeof normalizeOptionalString;
/** Another name of `normalizeOptionalNumber`. */
export const optionalNumber: typeof normalizeOptionalNumber;
/** Another name of `normalizeOptionalInteger`. */
export const optionalInteger: typeof normalizeOptionalInteger;
/** Splits on `,`, `，` and line ends; at most 32 trimmed, non-empty items. */
export function splitList(value: unknown): string[];
/** A copy without undefined members (and without empty arrays when asked). */
export function compactRecord<T extends object>(value: T, options?: { dropEmptyArrays?: boolean }): Partial<T>;
/** An entity of a manual payload: `<entity>Json` text, then `<entity>Form` through `fromForm`, then `<entity>`. */
export function readManualEntity(payload: any, entity: string, fromForm: (form: any) => unknown): any;
/** Checks the envelope every stored entity has: an id, `schemaVersion` 1, at most 65536 characters. */
export function assertEntityEnvelope<T>(value: T, options?: { name?: string; idPattern?: RegExp; maxLength?: number }): T;
/** A signal that aborts with `signal` or after `ms`. */
export function abortSignalWithTimeout(signal: AbortSignal | undefined | null, ms: number): AbortSignal;
/** A copy without the bookkeeping a model has no use for: session, UUID ids, time stamps. */
export function modelFacingJson(value: unknown): any;
/** About how many tokens a text is: one for each CJK character, one for four others. */
export function estimateTokens(text: string): number;
/** Names no plugin tool may have. */
export const FRAMEWORK_TOOL_NAMES: readonly string[];
/** The value a key has for this execution: the plugin's last pending write, else what is stored. */
export function overlayPluginDataValue(
  proposals: readonly Proposal[], pluginId: string, namespace: string, key: string, stored: unknown,
): { deleted: boolean; value: any };
/** Rows with pending writes laid over, keyed by the JSON of `[namespace, key]`. */
export function overlayPluginDataRows<R extends { namespace: string; key: string }>(
  proposals: readonly Proposal[], pluginId: string, rows: readonly R[],
): Map<string, R>;
