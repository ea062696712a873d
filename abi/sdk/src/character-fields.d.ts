import type { CharacterSchema } from "./world.js";
export interface CharacterFieldIssue {
  field: string;
  message: string;
}
/** Fields do not fit the character schema. */
export class CharacterFieldValidationError extends Error {
  readonly code: "CHARACTER_FIELDS_INVALID";
  readonly issues: CharacterFieldIssue[];
  constructor(issues: CharacterFieldIssue[]);
}
/** The fields with the schema's defaults for those that are missing. */
export function mergeSchemaDefaults(schema: Pick<CharacterSchema, "attributes"> | null | undefined, fields: Record<string, unknown> | undefined): Record<string, any>;
/** What does not fit. Fields the schema does not name are kept unchecked, nulls are not looked at. */
export function characterFieldIssues(schema: Pick<CharacterSchema, "attributes"> | null | undefined, fields: Record<string, unknown>): CharacterFieldIssue[];
/** Throws a `CharacterFieldValidationError` when something does not fit; gives the fields back. */
export function assertCharacterFields<F extends Record<string, unknown>>(schema: Pick<CharacterSchema, "attributes"> | null | undefined, fields: F): F;
