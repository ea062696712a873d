export type JsonRead = { ok: true; value: any } | { ok: false; reason: string; near: string };
/** Parses JSON a model wrote almost right. `field: true` also closes what is left open. */
export function parseJsonText(text: string, options?: { field?: boolean }): JsonRead;
