// @vitest-environment node
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

// The pairs of tokens that text and signs are drawn with, and the least contrast of WCAG 2.2 AA for them.
const TEXT = 4.5;
const SIGN = 3;
const PAIRS: [string, string, number][] = [
  ["foreground", "background", TEXT],
  ["foreground", "surface", TEXT],
  ["muted-foreground", "background", TEXT],
  ["muted-foreground", "surface", TEXT],
  ["accent", "background", TEXT],
  ["accent", "surface", TEXT],
  ["accent-foreground", "accent", TEXT],
  ["success", "surface", TEXT],
  ["warning", "surface", TEXT],
  ["danger", "surface", TEXT],
  ["danger", "background", TEXT],
];
const TOKENS = [
  "background",
  "surface",
  "foreground",
  "muted-foreground",
  "border",
  "accent",
  "accent-foreground",
  "success",
  "warning",
  "danger",
  "radius-control",
  "radius-card",
  "font-sans",
  "font-serif",
  "font-display",
];

const css = readFileSync(new URL("./tokens.css", import.meta.url), "utf8");

function block(selector: string): Map<string, string> {
  const start = css.indexOf(selector);
  expect(start, selector).toBeGreaterThanOrEqual(0);
  const body = css.slice(css.indexOf("{", start) + 1, css.indexOf("}", start));
  return new Map(
    [...body.matchAll(/--(?:covel|ui)-([\w-]+):\s*([^;]+);/g)].map((match) => [
      match[1] ?? "",
      (match[2] ?? "").trim(),
    ]),
  );
}

function luminance(color: string): number {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(color);
  if (!match) throw new Error(`not a colour: ${color}`);
  const [r = 0, g = 0, b = 0] = match.slice(1).map((part) => {
    const value = parseInt(part, 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

const light = block(':root[data-covel-scheme="light"]');
const dark = new Map([...light, ...block(':root[data-covel-scheme="dark"]')]);

describe.each([
  ["light", light],
  ["dark", dark],
])("the %s scheme", (_, tokens) => {
  // The names are those that web views get too (WEB-6).
  it("has the fifteen tokens", () => {
    for (const token of TOKENS) expect(tokens.get(token), token).toBeTruthy();
  });

  it.each(PAIRS)("draws %s on %s with a contrast of at least %d", (front, back, least) => {
    expect(contrast(tokens.get(front) ?? "", tokens.get(back) ?? "")).toBeGreaterThanOrEqual(least);
  });

  it("draws the running colour so that it can be told from the surface", () => {
    expect(contrast(tokens.get("lantern") ?? "", tokens.get("surface") ?? "")).toBeGreaterThanOrEqual(SIGN);
  });
});
