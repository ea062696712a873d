// Checks of narration. What people say inside it does not count.

const QUOTES = [/“[^”\n]*”?/g, /「[^」\n]*」?/g, /『[^』\n]*』?/g, /«[^»\n]*»?/g, /„[^“\n]*“?/g, /"[^"\n]*"?/g];
/** @type {Record<"first" | "second", RegExp>} */
const WORDS = {
  first: /\b(?:I|I['’](?:m|d|ve|ll)|[Mm]e|[Mm]y|[Mm]yself|[Ww]e|[Uu]s|[Oo]ur)\b|我/u,
  second: /\b(?:[Yy]ou|[Yy]our|[Yy]ours|[Yy]ourself)\b|[你您]/u,
};

/** @type {typeof import("./narrative.js").outsideDialogue} */
export const outsideDialogue = (text) => QUOTES.reduce((left, quote) => left.replace(quote, ""), String(text));
/** @type {typeof import("./narrative.js").perspectiveError} */
export function perspectiveError(text, person) {
  const narration = outsideDialogue(text);
  for (const other of /** @type {const} */ (["first", "second"])) {
    const found = other === person ? undefined : WORDS[other].exec(narration)?.[0];
    // A first person may well speak of "you", the player, in passing.
    if (found !== undefined && !(person === "first" && WORDS.first.test(narration))) {
      return `tell it in the ${person} person: outside of dialogue it says "${found}"`;
    }
  }
  return undefined;
}
/** @type {typeof import("./narrative.js").createNarrativeReview} */
export function createNarrativeReview({ person, minLength = 0, maxLength = Number.POSITIVE_INFINITY, checks = [] }) {
  return (text) => {
    const length = [...text.trim()].length;
    if (length < minLength) return `write at least ${minLength} characters; it has ${length}`;
    if (length > maxLength) return `write at most ${maxLength} characters; it has ${length}`;
    const told = person === undefined ? undefined : perspectiveError(text, person);
    if (told !== undefined) return told;
    for (const check of checks) {
      const found = check(text);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}
