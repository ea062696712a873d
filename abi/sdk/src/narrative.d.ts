export type NarrativePerson = "first" | "second" | "third";
/** A text without what is said in it. */
export function outsideDialogue(text: string): string;
/** An English sentence when the narration is told in another person than it should be, otherwise undefined. */
export function perspectiveError(text: string, person: NarrativePerson): string | undefined;
/** Checks drafts one after another; each answers what to correct, or undefined. Fits `PostLLMResponse`. */
export function createNarrativeReview(options: {
  person?: NarrativePerson;
  /** Characters. */
  minLength?: number;
  maxLength?: number;
  /** Further checks. */
  checks?: readonly ((text: string) => string | undefined)[];
}): (text: string) => string | undefined;
