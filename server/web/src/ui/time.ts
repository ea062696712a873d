/** A point in time as servers write it: ISO text, or milliseconds, or seconds since 1970. */
export function asDate(value: string | number | undefined): Date | undefined {
  if (value === undefined) return undefined;
  const date = new Date(typeof value === "number" && value < 100_000_000_000 ? value * 1_000 : value);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
