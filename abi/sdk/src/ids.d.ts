import type { RandomSource } from "./contexts.js";
/** `prefix-slug-hex8`; the slug is left out when the label has no ASCII letters or digits. */
export function shortId(prefix: string, label?: string, sessionId?: string, random?: RandomSource): string;
/** Independent ids for several labels. */
export function shortIdBatch(prefix: string, labels: readonly string[], sessionId?: string, random?: RandomSource): string[];
/** The slug of a label; a label without ASCII letters or digits gets an eight digit digest. */
export function wordSlug(label: string): string;
/** `prefix-slug`, with `-2`, `-3`... when taken. */
export function wordId(prefix: string, label: string, taken?: Iterable<string>): string;
