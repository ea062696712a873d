import type { Command } from "../api/types";

/** The longest text one message may have, in characters; the server's own limit. */
export const MAX_MESSAGE = 100_000;

/** A command's word without the slash. */
export function commandWord(command: Command): string {
  return (command.name || command.commandId).replace(/^\//, "").trim();
}

/** What a composed line asks for. Only a slash at the very start makes a command. */
export type Composed =
  | { kind: "message"; content: string }
  | { kind: "command"; command: string }
  | { kind: "unknown-command"; word: string }
  | { kind: "empty" }
  | { kind: "too-long" };

export function readComposed(text: string, commands: readonly Command[] | undefined): Composed {
  const content = text.trim();
  if (content === "") return { kind: "empty" };
  if (Array.from(content).length > MAX_MESSAGE) return { kind: "too-long" };
  const match = /^\/(\S*)/.exec(text);
  if (!match) return { kind: "message", content };
  const word = match[1] ?? "";
  // Without the list (it could not be loaded) the server decides.
  if (commands && !commands.some((command) => commandWord(command) === word))
    return { kind: "unknown-command", word: `/${word}` };
  return { kind: "command", command: content };
}

/** Commands to offer while the first word is typed. */
export function commandHints(text: string, commands: readonly Command[]): Command[] {
  const match = /^\/(\S*)$/.exec(text);
  if (!match) return [];
  const typed = (match[1] ?? "").toLowerCase();
  return commands.filter((command) => commandWord(command).toLowerCase().startsWith(typed)).slice(0, 8);
}

/** A short form of a command's arguments, for the hint list: `<sides> [times]`. */
export function argumentHint(command: Command): string {
  const list = command.arguments;
  if (typeof list === "string") return list;
  if (!Array.isArray(list)) return "";
  return list
    .map((entry: unknown) => {
      if (typeof entry === "string") return `<${entry}>`;
      if (typeof entry !== "object" || entry === null) return "";
      const { name, required } = entry as { name?: unknown; required?: unknown };
      if (typeof name !== "string") return "";
      return required === true ? `<${name}>` : `[${name}]`;
    })
    .filter(Boolean)
    .join(" ");
}
