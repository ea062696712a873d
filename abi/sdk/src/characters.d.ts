import type { Character, PlayerAction, Seat } from "./world.js";
type Named = Pick<Character, "name" | "aliases">;
type Identified = Pick<Character, "id" | "name" | "aliases">;
export type CharacterResult<C> = { status: "found"; character: C } | { status: "ambiguous"; candidates: C[] } | { status: "missing"; closest: C[] };
/** The key under which names are the same. */
export function characterNameKey(name: string): string;
/** `Name (aka A, B)`. */
export function characterLabel(character: Named): string;
/** Aliases of the lists without folded duplicates and without the name itself. */
export function mergeCharacterAliases(name: string, ...lists: (readonly string[])[]): string[];
/** The first alias that names another character, with its owner. */
export function findCharacterAliasConflict<C extends Identified>(characters: readonly C[], id: string, aliases: readonly string[]): { alias: string; owner: C } | undefined;
/** The ids of the characters that a text names, by name or alias. */
export function mentionedCharacterIds(text: string, characters: readonly Identified[]): Set<string>;
/** By id, name, alias, then (with `partial`) the single one that contains the query. */
export function resolveCharacter<C extends Identified>(characters: readonly C[], query: string, options?: { partial?: boolean }): CharacterResult<C>;
/** An English sentence about a character that was not found. */
export function describeUnresolvedCharacter<C extends Identified>(query: string, result: CharacterResult<C>, characters?: readonly C[]): string;
/** Every character bound to a seat, the current one first. */
export function seatCharacterIds(seat: Seat | undefined): string[];
/** The seat marked primary, else the first. */
export function primarySeat(seats: readonly Seat[] | undefined): Seat | undefined;
/** The character a player action names first; otherwise the current character of the primary seat. */
export function actingCharacterOf<C extends { id: string }>(
  actions: readonly Pick<PlayerAction, "characterId" | "actorId">[] | undefined, characters: readonly C[] | undefined, seats: readonly Seat[] | undefined,
): C | undefined;
