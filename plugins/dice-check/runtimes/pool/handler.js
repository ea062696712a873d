import { draw, sidesOf } from "../../lib/dice.js";

/** Three dice for whatever the story leaves open. */
const POOL = 3;

/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function pool(ctx) {
  const sides = sidesOf(ctx.userSettings?.sides);
  const rolls = Array.from({ length: POOL }, () => draw(ctx.random, sides));
  return { outcome: "success", value: { sides, rolls } };
}
