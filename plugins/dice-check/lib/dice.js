/** The bounds a die keeps, whatever a setting or a player asks for. */
export const MIN_SIDES = 2;
export const MAX_SIDES = 100;
export const DEFAULT_SIDES = 20;

/** A usable number of sides. */
export function sidesOf(value) {
  return Number.isInteger(value) && value >= MIN_SIDES && value <= MAX_SIDES ? value : DEFAULT_SIDES;
}

/** One roll, from 1 to `sides`. */
export function draw(random, sides) {
  return random.int(1, sides + 1);
}

/** Keys that sort in turn order. */
export function turnKey(turn) {
  return `turn-${String(turn).padStart(6, "0")}`;
}
