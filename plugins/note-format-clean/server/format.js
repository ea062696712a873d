/**
 * Tidy text: no space at the ends of lines, no two empty lines in a row, none at the ends.
 * @param {string} text
 */
export function format(text) {
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.replace(/[ \t]+/g, " ").trim());
  const kept = lines.filter((line, at) => line !== "" || (at > 0 && lines[at - 1] !== ""));
  return kept.join("\n").replace(/^\n+|\n+$/g, "");
}
