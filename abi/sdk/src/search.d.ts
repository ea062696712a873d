export interface RankedText {
  index: number;
  score: number;
  /** The part of the query's terms that were found, 0 to 1. */
  coverage: number;
  matched: string[];
}
/** Search terms of a text: folded words of two letters or more, and pairs of CJK characters. */
export function searchTerms(text: string): string[];
/** Texts by how well they match, best first; texts that match nothing are left out. */
export function rankTexts(query: string, texts: readonly string[]): RankedText[];
/** At most 500 characters of a text, from 120 before the first term found. */
export function searchExcerpt(text: string, terms: readonly string[], options?: { before?: number; max?: number }): string;
/** Earlier summary entries and own ones, at most 16. */
export function appendSummaryEntries<T>(previous: readonly T[] | undefined, entries: readonly T[]): T[];
