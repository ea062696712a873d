/** Bounds on what one panel may cost. Specs and data come from packages and are not trusted. */

/** Nesting of view nodes. */
export const MAX_DEPTH = 32;
/** Nodes of one expanded panel, repeats included. */
export const MAX_NODES = 2_000;
/** Items that one `repeat` or one list component shows. */
export const MAX_ITEMS = 200;
/** Nesting of one expression. */
export const MAX_EXPRESSION_DEPTH = 16;
/** Expression steps of one expansion. */
export const MAX_EVALUATIONS = 50_000;
/** Characters of one text. */
export const MAX_TEXT = 20_000;
/** Levels compared when data changes; anything deeper counts as changed. */
export const MAX_COMPARE_DEPTH = 32;
