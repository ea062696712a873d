import { describe, expect, it } from "vitest";
import { preferredLocale, textIn, translate } from ".";
import { en } from "./en";
import { zh } from "./zh";

describe("texts", () => {
  it("have the same placeholders in both languages", () => {
    const marks = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
    for (const key of Object.keys(en) as (keyof typeof en)[]) expect(marks(zh[key]), key).toEqual(marks(en[key]));
  });

  it("fill in values and leave unknown marks alone", () => {
    expect(translate("en", "play.progress", { done: 1, all: 3 })).toBe("1 of 3 steps done");
    expect(translate("en", "play.progress", { done: 1 })).toBe("1 of {all} steps done");
  });

  it("come from locale maps in the reader's language, else English, else any", () => {
    const map = { en: "Weather", "zh-CN": "天气" };
    expect(textIn(map, "zh-CN")).toBe("天气");
    expect(textIn(map, "fr")).toBe("Weather");
    expect(textIn({ fr: "Météo" }, "en")).toBe("Météo");
    expect(textIn({ en: { nested: true } }, "en")).toBe("");
    expect(textIn("plain", "en")).toBe("plain");
    expect(textIn(undefined, "en")).toBe("");
  });
});

describe("preferredLocale", () => {
  it.each([
    ["zh-CN", ["en"], "zh-CN"],
    [null, ["de", "zh-TW", "en"], "zh-CN"],
    [null, ["de"], "en"],
    ["nonsense", ["en-GB"], "en"],
  ] as const)("%s, %j -> %s", (stored, languages, expected) => {
    expect(preferredLocale(stored, languages)).toBe(expected);
  });
});
