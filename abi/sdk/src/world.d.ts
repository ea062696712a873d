import type { JsonObject, JsonSchema } from "./json.js";

export interface Character {
  id: string;
  name: string;
  /** `player`, or a type of the character schema. */
  type: string;
  aliases?: string[];
  description?: string;
  fields?: Record<string, any>;
  version?: number;
}
/** A character as `ctx.world` shows it. */
export interface CharacterRecord extends Character {
  sessionId: string;
  version: number;
  createdAt: string;
  updatedAt: string;
}
export type CharacterAttributeType = "string" | "number" | "boolean" | "enum" | "array" | "object" | "map";
export interface CharacterAttributeShape {
  type: CharacterAttributeType;
  min?: number | null;
  max?: number | null;
  /** Of an array. */
  itemType?: "string" | "number" | null;
  /** Of an enum: values, or objects with a `value`. */
  options?: unknown[] | null;
  /** Of an object: its members. */
  subSchema?: (CharacterAttributeShape & { id: string })[] | Record<string, CharacterAttributeShape> | null;
  /** Of a map; `string` when left out. */
  valueType?: "string" | "number" | "boolean" | null;
}
export interface CharacterAttribute extends CharacterAttributeShape {
  id: string;
  name: unknown;
  category: "stats" | "bio" | "abilities" | "equipment" | "social";
  description?: unknown;
  defaultValue?: unknown;
}
export interface CharacterSchema {
  types: string[];
  attributes: CharacterAttribute[];
  version?: number;
}
/** Who plays, and which characters that is. */
export interface Seat {
  id: string;
  primary?: boolean;
  currentCharacterId?: string;
  characterIds?: string[];
}
export interface Dimension {
  name: string;
  description?: string;
  schema: JsonSchema;
  value: unknown;
  version: number;
}
export interface WorldRecord {
  id: string;
  name: string;
  description?: unknown;
  lore?: unknown;
  tags?: string[];
  locale?: string;
  metadata?: JsonObject;
  [field: string]: unknown;
}
/** `ctx.world`: read-only. Characters and their schema show earlier writes of this execution; the rest is frozen with it. */
export interface WorldView {
  readonly worldRecord: WorldRecord | null;
  readonly characterSchema: CharacterSchema | null;
  readonly characters: readonly CharacterRecord[];
  readonly dimensions: Readonly<Record<string, Dimension>>;
  readonly dimensionProviderPluginId: string | null;
  readonly seats: readonly Seat[];
}
/** One thing the player did this turn. */
export interface PlayerAction {
  type: string;
  content?: string;
  seatId?: string;
  /** Whose action it is. */
  characterId?: string;
  actorId?: string;
}
