import type { LayerGroup } from "./model";

/** Maps microseconds of a turn to horizontal units, monotonically. */
export type Scale = (micros: number) => number;

/** Exponent that tames long layers: a model call lasts thousands of times longer than a function. */
const POWER = 0.42;

export function trueScale(total: number, width: number): Scale {
  const span = Math.max(total, 1);
  return (at) => clamp(at / span) * width;
}

/**
 * A scale that gives each layer room to be seen: between the starts of two layers it is linear, but the room of a layer grows
 * only with a small power of its duration, and never falls under `minimum`.
 */
export function evenScale(groups: readonly LayerGroup[], total: number, width: number, minimum = 18): Scale {
  const starts = [...new Set(groups.map((group) => group.start))].sort((a, b) => a - b);
  if (starts.length === 0 || total <= 0) return trueScale(total, width);
  if (starts[0] !== 0) starts.unshift(0);
  const bounds = [...starts.filter((start) => start < total), total];
  const spans = bounds.slice(1).map((bound, index) => bound - (bounds[index] ?? 0));
  const floor = Math.min(minimum, width / Math.max(spans.length, 1));
  const spare = width - floor * spans.length;
  const weights = spans.map((span) => span ** POWER);
  const sum = weights.reduce((a, b) => a + b, 0) || 1;
  const edges = [0];
  for (const weight of weights) edges.push((edges.at(-1) ?? 0) + floor + (spare * weight) / sum);
  return (at) => {
    if (at <= 0) return 0;
    if (at >= total) return width;
    let index = 0;
    while (index < spans.length - 1 && at >= (bounds[index + 1] ?? Infinity)) index++;
    const from = edges[index] ?? 0;
    const to = edges[index + 1] ?? width;
    return from + (to - from) * clamp((at - (bounds[index] ?? 0)) / (spans[index] || 1));
  };
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** A duration for people: `420 µs`, `3.2 ms`, `1.4 s`, `2 min 5 s`. */
export function duration(micros: number, locale: string): string {
  const show = (value: number, digits: number) =>
    value.toLocaleString(locale, { maximumFractionDigits: digits, minimumFractionDigits: 0 });
  if (micros < 1_000) return `${show(micros, 0)} µs`;
  if (micros < 10_000) return `${show(micros / 1_000, 1)} ms`;
  if (micros < 999_500) return `${show(micros / 1_000, 0)} ms`;
  if (micros < 59_950_000) return `${show(micros / 1_000_000, 1)} s`;
  const seconds = Math.round(micros / 1_000_000);
  return `${show(Math.floor(seconds / 60), 0)} min ${show(seconds % 60, 0)} s`;
}
