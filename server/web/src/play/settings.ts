/** Plugin settings that the player chose for one session, by plugin and key. Kept by the browser, sent with each turn. */
export type PlayerSettings = Record<string, Record<string, unknown>>;

const name = (sessionId: string) => `covel.settings.${sessionId}`;

export function readSettings(sessionId: string): PlayerSettings {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(name(sessionId)) ?? "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as PlayerSettings) : {};
  } catch {
    return {};
  }
}

export function writeSettings(sessionId: string, settings: PlayerSettings): void {
  try {
    if (Object.keys(settings).length > 0) localStorage.setItem(name(sessionId), JSON.stringify(settings));
    else localStorage.removeItem(name(sessionId));
  } catch {
    // Storage may be blocked or full; the defaults are used then.
  }
}
