// Pieces of prompts.
import { actingCharacterOf, characterLabel } from "./characters.js";

/** Characters of a description, and of the fields, that a line shows. */
const PART = 400;
/** Characters of all lines together; whoever comes later is only named. */
const TOTAL = 8_000;

/** @type {typeof import("./prompt-text.js").escapePromptText} */
export const escapePromptText = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
/** @type {typeof import("./prompt-text.js").promptBlock} */
export function promptBlock(tag, text, attributes = {}) {
  if (text.trim() === "") return "";
  const shown = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}="${escapePromptText(String(value)).replaceAll('"', "&quot;")}"`);
  return `<${tag}${shown.join("")}>\n${text.trim()}\n</${tag}>`;
}
/** @type {typeof import("./prompt-text.js").clipText} */
export function clipText(text, max) {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, Math.max(0, max - 1)).join("")}…`;
}
/** @param {string} text */
const cut = (text) => {
  const characters = [...text];
  return characters.length <= PART ? text : `${characters.slice(0, PART).join("")}…`;
};
/** @type {typeof import("./prompt-text.js").characterLine} */
export function characterLine(character) {
  const fields = Object.keys(character.fields ?? {}).length === 0 ? "" : JSON.stringify(character.fields);
  const parts = [`${characterLabel(character)} [${character.type}]`, ...[character.description ?? "", fields].filter((part) => part !== "").map(cut)];
  return parts.join(" | ").replace(/[\r\n]/g, " ");
}
/** @type {typeof import("./prompt-text.js").characterSheetSegments} */
export function characterSheetSegments({ characters, seats = [], actions = [] }) {
  /** @type {import("./extension-points.js").PromptSegment[]} */
  const segments = [];
  const acting = actingCharacterOf(actions, characters, seats);
  if (acting !== undefined) {
    segments.push({ id: "player-sheet", content: promptBlock("player-character", characterLine(acting)), position: "system", audience: "all", volatility: "turn" });
  }
  let left = TOTAL;
  const lines = characters
    .filter((one) => one !== acting && one.type !== "player")
    .map((one) => {
      const line = `- ${characterLine(one)}`;
      const length = [...line].length;
      if (length > left) left = 0;
      else {
        left -= length;
        return line;
      }
      return `- ${one.name}`;
    });
  if (lines.length > 0) {
    segments.push({ id: "npc-sheets", content: promptBlock("characters", lines.join("\n")), position: "system", audience: "all", volatility: "turn" });
  }
  return segments;
}
