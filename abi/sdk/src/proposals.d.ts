import type { JsonSchema, JsonValue } from "./json.js";
import type { CharacterSchema } from "./world.js";

/** One operation of `pluginData.update`. Paths are JSON Pointers. */
export type DataOperation =
  | { op: "add"; path: string; value: unknown }
  | { op: "replace"; path: string; value: unknown }
  | { op: "remove"; path: string }
  | { op: "move"; from: string; path: string }
  | { op: "copy"; from: string; path: string }
  | { op: "test"; path: string; value: unknown }
  /** Adds to a number (0 when there is none); outside `min` or `max` the update is refused with `conflict`. */
  | { op: "inc"; path: string; by: number; min?: number; max?: number }
  /** Merges an object; a null takes a member away. */
  | { op: "merge"; path: string; value: { [key: string]: unknown } };

export interface UiPart {
  id?: string;
  type: string;
  status?: "pending" | "streaming" | "success" | "error" | "paused";
  content?: unknown;
  retry?: { count: number; lastError?: string };
  [field: string]: unknown;
}
export interface UiBlock {
  parts: UiPart[];
  layout?: "stream" | "split" | "overlay";
  status?: "pending" | "streaming" | "success" | "error" | "paused";
}
export interface FormField {
  type: "text" | "textarea" | "select" | "checkbox" | "number";
  name: string;
  label: string;
  placeholder?: string;
  /** Of a select. */
  options?: (string | { value: string; label: string })[];
  required?: boolean;
  defaultValue?: unknown;
  min?: number;
  max?: number;
  /** Counted from `min`, or from 0. */
  step?: number;
}
export interface FormInteraction {
  type: "form";
  interactionId: string;
  title: string;
  fields: FormField[];
  submitLabel?: string;
  /** Becomes the player's message: `{{field}}` is filled. */
  narrativeTemplate?: string;
  /** A validator registered with `registerFormValidator`. */
  validation?: { name: string; data?: unknown };
  submitBehavior?: { echoFilledNarrative?: boolean; immediate?: boolean };
  notice?: string;
}
export interface ChoiceInteraction {
  type: "choice";
  interactionId: string;
  prompt?: string;
  title?: string;
  choices: { id: string; label: string; description?: string; category?: string }[];
  /** `{{selectedId}}` and `{{selectedLabel}}` are filled. */
  narrativeTemplate?: string;
}
export interface ConfirmationInteraction {
  type: "confirmation";
  interactionId: string;
  title?: string;
  message?: string;
  /** `{{confirmed}}` is filled. */
  narrativeTemplate?: string;
}
export type Interaction = FormInteraction | ChoiceInteraction | ConfirmationInteraction;

/** With `expectedVersion` a patch onto what is there at commit, otherwise the whole record. */
export interface CharacterUpsert {
  id: string;
  name?: string;
  type?: string;
  aliases?: string[];
  removeAliases?: string[];
  description?: string;
  /** Null clears all; in a patch a null member takes that field away. */
  fields?: Record<string, unknown> | null;
  version?: number;
  expectedVersion?: number;
  createdAt?: string;
}
export interface LorebookEntry {
  id: string;
  content: string;
  strategy: "constant" | "selective";
  keys?: string[];
  position?: unknown;
  insertionOrder?: number;
  enabled?: boolean;
  extra?: unknown;
}
export interface StatePatch {
  table: string;
  field: string;
  value: unknown;
  reason?: string;
}
export interface MediaRef {
  id: string;
  mime: string;
  size: number;
}
export interface AssetGeneration {
  ref: MediaRef;
  modality: string;
  meta?: unknown;
}
export interface DimensionUpdate {
  updates: { id: string; expectedVersion: number; value: unknown; reason?: string }[];
  source?: { resultId: string; turnNumber: number };
  readVersions?: Record<string, number>;
  settlement?: "no-change" | "manual" | "skipped";
}
/** What each type of proposal carries. */
export interface ProposalPayloads {
  "narrative.append": { content: string; kind?: string };
  "event.emit": { topic: string; data?: unknown };
  "state.patch": StatePatch;
  "interaction.request": { interactionId: string; type: "form" | "choice" | "confirmation"; title?: string; narrativeTemplate?: string; [field: string]: unknown };
  "ui.render": UiBlock;
  "asset.generate": AssetGeneration;
  "plugin.data": { namespace: string; key: string; value: unknown };
  "plugin.data.batch": { items: { namespace: string; key: string; value: unknown }[] };
  "plugin.data.delete": { namespace: string; key: string };
  "plugin.data.update": { namespace: string; key: string; ops: DataOperation[] };
  "character.upsert": CharacterUpsert;
  "character.schema.set": CharacterSchema;
  "lorebook.upsert": { entries: LorebookEntry[] };
  "dimension.initialize": { definitions: Record<string, { name: string; schema: JsonSchema; [field: string]: unknown }> };
  "dimension.update": DimensionUpdate;
}
export type ProposalType = keyof ProposalPayloads;
/** A write that has not been committed; the host checks it and knows where it comes from. */
export type Proposal<T extends ProposalType = ProposalType> = {
  [K in T]: {
    id: string;
    type: K;
    source: { pluginId: string; runtimeId: string };
    turnId: string;
    sessionId: string;
    payload: ProposalPayloads[K];
    timestamp: string;
  };
}[T];
export interface EmittedEvent {
  topic: string;
  data?: unknown;
}
/** What a tool or handler gives besides its content. */
export interface ToolResult<T = JsonValue> {
  kind: "covel.tool-result";
  content: T;
  pendingProposals: Proposal[];
  emittedEvents?: EmittedEvent[];
}
