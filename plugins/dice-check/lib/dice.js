/** The bounds a die keeps, whatever a setting or a player asks for. */
export const MIN_SIDES = 2;
export const MAX_SIDES = 100;
export const DEFAULT_SIDES = 20;

/**
 * A usable number of sides.
 * @param {unknown} value
 * @returns {number}
 */
export function sidesOf(value) {
  return typeof value === "number" && Number.isInteger(value) && value >= MIN_SIDES && value <= MAX_SIDES ? value : DEFAULT_SIDES;
}

/**
 * One roll, from 1 to `sides`.
 * @param {import("@covel/plugin-handlers-utils").RandomSource} random
 * @param {number} sides
 */
export function draw(random, sides) {
  return random.int(1, sides + 1);
}

/**
 * Keys that sort in turn order.
 * @param {number} turn
 */
export function turnKey(turn) {
  return `turn-${String(turn).padStart(6, "0")}`;
}
