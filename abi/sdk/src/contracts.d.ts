import type { z } from "zod";
import type { JsonSchema } from "./json.js";
import type { PlayerAction } from "./world.js";

/** A read service that says who acts next. */
export const TURN_POLICY_CONTRACT: "turn-policy@1";
/** An agent, run by others only, that plays one character. */
export const CHARACTER_ACTOR_CONTRACT: "character-actor@1";
export interface TurnLimits {
  maxActors: number;
  maxSubagentCalls: number;
}
export type TurnAction = PlayerAction;
/** A piece of the story. Who speaks is told by name. */
export interface StorySegment {
  kind: "narration" | "dialogue" | "action";
  text: string;
  speaker?: string;
}
/** What a caller of `turn-policy@1` gives; limits only lower what the host has left. */
export interface TurnPolicyRequest {
  actions: TurnAction[];
  present: { characterId: string; name: string }[];
  recentSegments: StorySegment[];
  limits?: TurnLimits;
}
/** What its handler gets. */
export interface TurnPolicyInput extends TurnPolicyRequest {
  limits: TurnLimits;
}
export interface TurnPolicyOutput {
  actors: { characterId: string; reason?: string; instruction?: string }[];
  order: "sequential" | "parallel";
  narrator: "before" | "after" | "none";
  yieldHint: "user" | "continue";
}
export interface CharacterActorInput {
  characterId: string;
  brief: string;
  instruction?: string;
}
export interface CharacterActorOutput {
  segments: { kind: "dialogue" | "action"; text: string }[];
  intent?: string;
}
/** Objects of these schemas are strict: a member they do not name is refused. */
export const turnPolicyRequestSchema: z.ZodType<TurnPolicyRequest>;
export const turnPolicyInputSchema: z.ZodType<TurnPolicyInput>;
export const turnPolicyOutputSchema: z.ZodType<TurnPolicyOutput>;
export const characterActorInputSchema: z.ZodType<CharacterActorInput>;
export const characterActorOutputSchema: z.ZodType<CharacterActorOutput>;
/** The same as JSON Schema, draft-7. */
export function turnPolicyRequestJsonSchema(): JsonSchema;
export function turnPolicyInputJsonSchema(): JsonSchema;
export function turnPolicyOutputJsonSchema(): JsonSchema;
export function characterActorInputJsonSchema(): JsonSchema;
export function characterActorOutputJsonSchema(): JsonSchema;
/** The plan, when it fits its schema and names only those present, nobody twice; throws otherwise. */
export function validateTurnPolicyOutput(context: { present: readonly { characterId: string }[] }, output: unknown): TurnPolicyOutput;
