/**
 * One bullet for each sentence; a line that ends with a colon opens a group, and what follows it is indented.
 * @param {string} text
 */
export function format(text) {
  const bullets = [];
  let indent = "";
  for (const line of text.split(/\r\n|\r|\n/)) {
    const trimmed = line.trim().replace(/^[-*•]\s+/, "");
    if (trimmed === "") {
      indent = "";
    } else if (/[:：]$/.test(trimmed)) {
      bullets.push(`- ${trimmed}`);
      indent = "  ";
    } else {
      for (const sentence of sentences(trimmed)) bullets.push(`${indent}- ${sentence}`);
    }
  }
  return bullets.join("\n");
}

/** @param {string} line */
function sentences(line) {
  return line
    .split(/(?<=[.!?。！？])\s*/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "");
}
