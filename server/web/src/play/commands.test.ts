import { describe, expect, it } from "vitest";
import { MAX_MESSAGE, argumentHint, commandHints, readComposed } from "./commands";

const commands = [
  { commandId: "dice-check:roll", name: "roll", arguments: [{ name: "sides", required: true }, { name: "times" }] },
  { commandId: "quest-log:quests", name: "/quests" },
];

describe("readComposed", () => {
  it.each([
    ["  look around \n", { kind: "message", content: "look around" }],
    ["   ", { kind: "empty" }],
    ["/roll 6", { kind: "command", command: "/roll 6" }],
    ["/quests", { kind: "command", command: "/quests" }],
    ["/rol", { kind: "unknown-command", word: "/rol" }],
    [" /rol", { kind: "message", content: "/rol" }],
    ["left/right", { kind: "message", content: "left/right" }],
    ["x".repeat(MAX_MESSAGE + 1), { kind: "too-long" }],
  ])("%#", (text, expected) => {
    expect(readComposed(text, commands)).toEqual(expected);
  });

  it("leaves unknown commands to the server when the list is not there", () => {
    expect(readComposed("/rol", undefined)).toEqual({ kind: "command", command: "/rol" });
  });
});

describe("hints", () => {
  it("match the first word only", () => {
    expect(commandHints("/", commands)).toHaveLength(2);
    expect(commandHints("/RO", commands).map((command) => command.commandId)).toEqual(["dice-check:roll"]);
    expect(commandHints("/roll 6", commands)).toEqual([]);
    expect(commandHints("roll", commands)).toEqual([]);
  });

  it("name the arguments", () => {
    expect(commands.map(argumentHint)).toEqual(["<sides> [times]", ""]);
  });
});
