import type { PromptSegment } from "./extension-points.js";
import type { Character, PlayerAction, Seat } from "./world.js";
/** Text that cannot end or open a block of a prompt. */
export function escapePromptText(text: string): string;
/** `<tag attribute="...">text</tag>` on lines of its own; empty text gives nothing. */
export function promptBlock(tag: string, text: string, attributes?: Record<string, string | number | boolean | undefined>): string;
/** At most `max` characters, the last one `…` when something was cut. */
export function clipText(text: string, max: number): string;
/** A character on one line: `name (aka a, b) [type] | description | fields`. */
export function characterLine(character: Character): string;
/** Segments for a prompt: the sheet of whoever acts, and a line for each other character that is no player. */
export function characterSheetSegments(input: {
  characters: readonly Character[];
  seats?: readonly Seat[];
  actions?: readonly PlayerAction[];
}): PromptSegment[];
