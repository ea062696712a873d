import type { z } from "zod";
import type { ToolContext } from "./contexts.js";
export type { ToolContext } from "./contexts.js";

export interface ToolDefinition<P extends z.ZodType> {
  name: string;
  description: string;
  /** Made with `covel.toolkit.z`. */
  parameters: P;
  /** Gets parsed parameters. */
  execute(params: z.output<P>, ctx: ToolContext): unknown;
}
export interface ToolModule<P extends z.ZodType> {
  readonly _type: "covel-tool";
  readonly name: string;
  readonly description: string;
  readonly parametersSchema: P;
  readonly jsonSchema: Record<string, unknown>;
  /** Parses the parameters, then runs; throws `ToolValidationError` when they do not fit. */
  execute(params: unknown, ctx: ToolContext): Promise<unknown>;
}
export type AnyToolModule = ToolModule<any>;
/** The arguments of a tool call did not fit its parameters. */
export class ToolValidationError extends Error {
  readonly code: "VALIDATION_ERROR";
  readonly details: { path: string; message: string }[];
  constructor(details: { path: string; message: string }[]);
}
/** A tool module: parameters are validated before `execute` runs. */
export function tool<P extends z.ZodType>(definition: ToolDefinition<P>): ToolModule<P>;
