import type { ChoiceInteraction, ConfirmationInteraction, FormField, FormInteraction, UiBlock } from "./proposals.js";
import type { Notification } from "./effects.js";
export interface FieldIssue {
  /** Left out when it is about the whole form. */
  field?: string;
  message: string;
}
/** A form for `effects.interactions`, checked: an id, fields with names of their own, defaults that fit. */
export function createForm(form: Omit<FormInteraction, "type">): FormInteraction;
/** A choice between two or more. */
export function createChoices(choice: Omit<ChoiceInteraction, "type">): ChoiceInteraction;
/** A question with yes and no. */
export function createConfirmation(question: Omit<ConfirmationInteraction, "type">): ConfirmationInteraction;
/** A notification as a block for `effects.ui` or a tool's `ui`. */
export function notificationBlock(notification: Notification): UiBlock;
/** Reads what a form was filled with: numbers out of text, defaults, and what is wrong with it. */
export function readFormValues(fields: readonly FormField[], values: Record<string, unknown>): { values: Record<string, any>; issues: FieldIssue[] };
/** Fills `{{name}}` from values; a full stop that would stand twice is dropped. Unknown names become empty. */
export function fillNarrativeTemplate(template: string, values: Record<string, unknown>): string;
