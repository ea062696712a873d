import { useId, useMemo } from "react";

/** Numbers in [0, 1) that depend only on a text, so that a world always looks the same. */
function numbers(seed: string): () => number {
  let state = 2166136261;
  for (let at = 0; at < seed.length; at++) state = Math.imul(state ^ seed.charCodeAt(at), 16777619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

type Motif = "sea" | "city" | "hills";

function motif(words: string): Motif {
  if (/sea|harbou?r|coast|light|island|tide|ocean|ship|port|海|港|灯|岛/i.test(words)) return "sea";
  if (/city|town|clock|station|street|court|urban|neon|城|街|站|都/i.test(words)) return "city";
  return "hills";
}

const HEIGHT = 132;

function ridge(next: () => number, width: number, base: number, rise: number): string {
  const steps = Math.round(width / 11);
  const points: string[] = [];
  const [a, b, c] = [next() * 6, next() * 6, next() * 6];
  for (let step = 0; step <= steps; step++) {
    const x = (step / steps) * width;
    const wave =
      Math.sin(step * 0.35 + a) * 0.5 +
      Math.sin(step * 0.8 + b) * 0.3 +
      Math.sin(step * 1.9 + c) * 0.14 +
      (next() - 0.5) * 0.08;
    points.push(`${x.toFixed(1)},${(base - wave * rise).toFixed(1)}`);
  }
  return `M0,${HEIGHT} L${points.join(" L")} L${width},${HEIGHT} Z`;
}

function skyline(next: () => number, extent: number, base: number, rise: number): string {
  let path = `M0,${HEIGHT}`;
  let x = 0;
  while (x < extent) {
    const width = 10 + next() * 22;
    const top = base - next() * rise;
    path += ` L${x.toFixed(1)},${top.toFixed(1)}`;
    if (next() > 0.72) path += ` L${(x + width / 2).toFixed(1)},${(top - 12).toFixed(1)}`;
    x = Math.min(extent, x + width);
    path += ` L${x.toFixed(1)},${top.toFixed(1)}`;
  }
  return `${path} L${extent},${HEIGHT} Z`;
}

/** A small landscape drawn from a world's id and tags. Decoration only. */
export function WorldArt({ id, tags = [], wide = false }: { id: string; tags?: string[]; wide?: boolean }) {
  const width = wide ? 760 : 320;
  const art = useMemo(() => {
    const next = numbers(id);
    const kind = motif([id, ...tags].join(" "));
    const hue = kind === "sea" ? 195 + next() * 40 : kind === "city" ? 265 + next() * 60 : 110 + next() * 60;
    const warm = 35 + next() * 45;
    const sun = { x: width * (0.2 + next() * 0.6), y: 30 + next() * 26, r: 11 + next() * 8 };
    const layers = [0, 1, 2].map((depth) => {
      const base = 74 + depth * 20;
      return {
        d:
          kind === "city" && depth > 0
            ? skyline(next, width, base + 16, 46 - depth * 8)
            : ridge(next, width, base, kind === "sea" ? 9 : 24 - depth * 5),
        fill: `oklch(${0.56 - depth * 0.14} ${0.06 + depth * 0.008} ${hue})`,
      };
    });
    const stars = Array.from({ length: width / 20 }, () => ({
      x: next() * width,
      y: next() * 56,
      r: 0.4 + next() * 0.7,
    }));
    const waves = Array.from({ length: width / 25 }, () => ({
      x: next() * width,
      y: 92 + next() * 36,
      w: 14 + next() * 46,
    }));
    const tower = width * (0.12 + next() * 0.55);
    return { kind, hue, warm, sun, layers, stars, waves, tower };
  }, [id, tags, width]);
  const { hue, warm, sun } = art;
  const gradient = useId();
  return (
    <svg
      className="world-art"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="xMidYMid slice"
      aria-hidden="true"
    >
      <defs>
        <linearGradient id={gradient} x1="0" y1="0" x2="0" y2="1">
          <stop offset="0" stopColor={`oklch(0.42 0.075 ${hue + 20})`} />
          <stop offset="0.55" stopColor={`oklch(0.68 0.07 ${hue})`} />
          <stop offset="0.8" stopColor={`oklch(0.85 0.09 ${warm})`} />
        </linearGradient>
        <linearGradient id={`${gradient}-beam`}>
          <stop offset="0" stopColor={`oklch(0.95 0.1 ${warm})`} stopOpacity="0.55" />
          <stop offset="1" stopColor={`oklch(0.95 0.1 ${warm})`} stopOpacity="0" />
        </linearGradient>
      </defs>
      <rect width={width} height={HEIGHT} fill={`url(#${gradient})`} />
      {art.stars.map((star, index) => (
        <circle key={index} cx={star.x} cy={star.y} r={star.r} fill="oklch(0.97 0.02 90)" opacity="0.65" />
      ))}
      <circle cx={sun.x} cy={sun.y} r={sun.r * 2.4} fill={`oklch(0.93 0.08 ${warm})`} opacity="0.14" />
      <circle cx={sun.x} cy={sun.y} r={sun.r} fill={`oklch(0.95 0.06 ${warm})`} />
      {art.layers.map((layer, index) => (
        <path key={index} d={layer.d} fill={layer.fill} />
      ))}
      {art.kind === "sea" && (
        <>
          <g transform={`translate(${art.tower} 0)`} fill="oklch(0.24 0.03 230)">
            <path d="M-5,104 L-3,58 L3,58 L5,104 Z" />
            <rect x="-4" y="54" width="8" height="3" />
            <path d="M-3,48 L0,44 L3,48 L3,54 L-3,54 Z" />
            <circle cx="0" cy="51" r="1.8" fill={`oklch(0.94 0.13 ${warm})`} />
            <path d="M0,51 L110,33 L110,67 Z" fill={`url(#${gradient}-beam)`} />
            <path d="M-26,110 Q-10,98 0,102 Q14,97 30,110 Z" />
          </g>
          {art.waves.map((wave, index) => (
            <path
              key={index}
              d={`M${wave.x},${wave.y} h${wave.w}`}
              stroke={`oklch(0.9 0.05 ${warm})`}
              strokeWidth="0.8"
              opacity="0.4"
            />
          ))}
        </>
      )}
    </svg>
  );
}
