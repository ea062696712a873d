import type { Forecast, Sky } from "./types.ts";

/** Longest place name taken from a story. */
const MAX_PLACE = 80;

/** Words that tell the sky, most telling first. */
const WORDS: readonly (readonly [Sky, RegExp])[] = [
  ["storm", /\b(?:storm|gale|thunder|squall)s?\b|暴风|雷|狂风/iu],
  ["snow", /\b(?:snow|sleet|frost)\b|雪|霜/iu],
  ["rain", /\b(?:rain|drizzle|shower)s?\b|雨/iu],
  ["fog", /\b(?:fog|mist|haze|sea-fog)\b|雾/iu],
  ["cloud", /\b(?:cloud|clouds|overcast|grey|gray)\b|云|阴|灰/iu],
];

/** What may follow what; the first is the likeliest because it stands twice. */
const FOLLOWS: Readonly<Record<Sky, readonly Sky[]>> = {
  storm: ["rain", "rain", "cloud", "storm"],
  snow: ["snow", "cloud", "clear"],
  rain: ["cloud", "cloud", "rain", "storm", "fog"],
  fog: ["clear", "clear", "fog", "cloud"],
  cloud: ["cloud", "rain", "clear", "fog"],
  clear: ["clear", "clear", "cloud", "fog"],
};

const NAMES: Readonly<Record<Sky, readonly [string, string]>> = {
  storm: ["a storm", "有暴风"],
  snow: ["snow", "下雪"],
  rain: ["rain", "有雨"],
  fog: ["fog", "起雾"],
  cloud: ["cloud", "多云"],
  clear: ["clear sky", "放晴"],
};

/** The place a story has come to: the last name on a line of its own, in bold. */
export function placeIn(text: string): string | undefined {
  const headings = [...text.matchAll(/^\s*\*\*([^*\n]+)\*\*\s*$/gmu)];
  const place = headings.at(-1)?.[1].trim();
  return place ? place.slice(0, MAX_PLACE) : undefined;
}

/** The sky a story speaks of; clear when it does not say. */
export function skyIn(text: string): Sky {
  return WORDS.find(([, words]) => words.test(text))?.[0] ?? "clear";
}

/** What the sky does next. */
export function nextSky(sky: Sky, random: { int(min: number, max: number): number }): Sky {
  const follows = FOLLOWS[sky] ?? FOLLOWS.clear;
  return follows[random.int(0, follows.length)];
}

/** A forecast as a sentence. */
export function sentence({ place, sky, wind }: Forecast, locale = "en"): string {
  const chinese = /^zh(?!-hant|-tw|-hk|-mo)/iu.test(locale);
  const [english, han] = NAMES[sky];
  return chinese ? `${place}：接下来${han}，风力${wind}级。` : `${place}: ${english} next, wind force ${wind}.`;
}
