/** Largest state a panel may keep, in bytes of UTF-8 JSON. WEB-9 */
export const MAX_UI_STATE_BYTES = 32 * 1024;

/** What panels of one session keep for themselves. It lives as long as the side of the page does. */
export type UiStates = Map<string, unknown>;

/** A copy of `value` as JSON keeps it. Throws for what JSON cannot hold, and for too much. */
export function checkUiState(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError("the state is not JSON");
  if (new TextEncoder().encode(text).byteLength > MAX_UI_STATE_BYTES) throw new RangeError("the state is too large");
  const copy: unknown = JSON.parse(text);
  return copy;
}
