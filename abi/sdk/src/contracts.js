// Shapes of the contracts the framework owns and packages serve: `turn-policy@1` and `character-actor@1`. TPC-2..6
import { z } from "zod";

/** @type {typeof import("./contracts.js").TURN_POLICY_CONTRACT} */
export const TURN_POLICY_CONTRACT = "turn-policy@1";
/** @type {typeof import("./contracts.js").CHARACTER_ACTOR_CONTRACT} */
export const CHARACTER_ACTOR_CONTRACT = "character-actor@1";

// An isolate that never asks for them does not pay for making them.
const shapes = once(() => {
  const id = z.string().min(1).max(128);
  const count = z.int().min(0);
  /** @param {number} max */
  const text = (max) => z.string().min(1).max(max);
  const limits = z.strictObject({ maxActors: count, maxSubagentCalls: count });
  const action = z.strictObject({
    type: text(64),
    content: z.string().max(100_000).optional(),
    seatId: id.optional(),
    characterId: id.optional(),
    actorId: id.optional(),
  });
  // Who speaks is a name here, never an id.
  const segment = z.strictObject({ kind: z.enum(["narration", "dialogue", "action"]), text: text(100_000), speaker: text(80).optional() });
  const request = {
    actions: z.array(action).max(256),
    present: z.array(z.strictObject({ characterId: id, name: text(80) })).max(32),
    recentSegments: z.array(segment).max(60),
  };
  return {
    turnPolicyRequest: z.strictObject({ ...request, limits: limits.optional() }),
    turnPolicyInput: z.strictObject({ ...request, limits }),
    turnPolicyOutput: z.strictObject({
      actors: z.array(z.strictObject({ characterId: id, reason: z.string().max(500).optional(), instruction: z.string().max(2_000).optional() })).max(32),
      order: z.enum(["sequential", "parallel"]),
      narrator: z.enum(["before", "after", "none"]),
      yieldHint: z.enum(["user", "continue"]),
    }),
    characterActorInput: z.strictObject({ characterId: id, brief: text(20_000), instruction: z.string().max(2_000).optional() }),
    characterActorOutput: z.strictObject({
      segments: z.array(z.strictObject({ kind: z.enum(["dialogue", "action"]), text: text(4_000) })).min(1).max(8),
      intent: z.string().max(2_000).optional(),
    }),
  };
});

/** @template T @param {() => T} make @returns {() => T} */
function once(make) {
  /** @type {T | undefined} */
  let made;
  return () => (made ??= make());
}
/**
 * A schema that is made when it is first looked at.
 * @param {keyof ReturnType<typeof shapes>} name
 * @returns {any}
 */
function schema(name) {
  const target = () => /** @type {object} */ (shapes()[name]);
  return new Proxy(/** @type {object} */ ({}), {
    get: (_, key) => Reflect.get(target(), key),
    has: (_, key) => Reflect.has(target(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(target()),
  });
}

/** @type {typeof import("./contracts.js").turnPolicyRequestSchema} */
export const turnPolicyRequestSchema = schema("turnPolicyRequest");
/** @type {typeof import("./contracts.js").turnPolicyInputSchema} */
export const turnPolicyInputSchema = schema("turnPolicyInput");
/** @type {typeof import("./contracts.js").turnPolicyOutputSchema} */
export const turnPolicyOutputSchema = schema("turnPolicyOutput");
/** @type {typeof import("./contracts.js").characterActorInputSchema} */
export const characterActorInputSchema = schema("characterActorInput");
/** @type {typeof import("./contracts.js").characterActorOutputSchema} */
export const characterActorOutputSchema = schema("characterActorOutput");

/** @param {z.ZodType} schema @returns {any} */
const jsonSchemaOf = (schema) => z.toJSONSchema(schema, { target: "draft-7", io: "input" });
/** @type {typeof import("./contracts.js").turnPolicyRequestJsonSchema} */
export const turnPolicyRequestJsonSchema = () => jsonSchemaOf(turnPolicyRequestSchema);
/** @type {typeof import("./contracts.js").turnPolicyInputJsonSchema} */
export const turnPolicyInputJsonSchema = () => jsonSchemaOf(turnPolicyInputSchema);
/** @type {typeof import("./contracts.js").turnPolicyOutputJsonSchema} */
export const turnPolicyOutputJsonSchema = () => jsonSchemaOf(turnPolicyOutputSchema);
/** @type {typeof import("./contracts.js").characterActorInputJsonSchema} */
export const characterActorInputJsonSchema = () => jsonSchemaOf(characterActorInputSchema);
/** @type {typeof import("./contracts.js").characterActorOutputJsonSchema} */
export const characterActorOutputJsonSchema = () => jsonSchemaOf(characterActorOutputSchema);

/** @type {typeof import("./contracts.js").validateTurnPolicyOutput} */
export function validateTurnPolicyOutput({ present }, output) {
  const plan = turnPolicyOutputSchema.parse(output);
  const free = new Set(present.map(({ characterId }) => characterId));
  for (const { characterId } of plan.actors) {
    if (!free.delete(characterId)) {
      const known = present.some((one) => one.characterId === characterId);
      throw new RangeError(`actor ${characterId} ${known ? "is planned twice" : "is not present"}`);
    }
  }
  return plan;
}
