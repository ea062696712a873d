// Reading values of forms, settings and model output.

export function normalizeRequiredString(value, name = "value") {
  const text = typeof value === "string" ? value.trim() : "";
  if (text === "") throw new TypeError(`${name} must be a non-empty string`);
  return text;
}
export function normalizeOptionalString(value) {
  const text = typeof value === "string" ? value.trim() : "";
  return text === "" ? undefined : text;
}
export function normalizeOptionalNumber(value) {
  if (typeof value === "string" && value.trim() === "") return undefined;
  const number = typeof value === "number" ? value : typeof value === "string" ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}
export function normalizeOptionalInteger(value) {
  const number = normalizeOptionalNumber(value);
  return Number.isSafeInteger(number) ? number : undefined;
}
/** Splits on `,`, `，` and line ends; at most 32 trimmed, non-empty items. */
export function splitList(value) {
  const items = Array.isArray(value) ? value.filter((item) => typeof item === "string") : typeof value === "string" ? value.split(/[,，\r\n]/) : [];
  return items.map((item) => item.trim()).filter((item) => item !== "").slice(0, 32);
}
/** A copy without undefined members (and without empty arrays when asked). */
export function compactRecord(value, { dropEmptyArrays = false } = {}) {
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== undefined && !(dropEmptyArrays && Array.isArray(member) && member.length === 0)),
  );
}
/** An entity of a manual payload: `<entity>Json` text, then `<entity>Form` through `fromForm`, then `<entity>`. */
export function readManualEntity(payload, entity, fromForm) {
  const text = payload?.[`${entity}Json`];
  if (typeof text === "string" && text.trim() !== "") return JSON.parse(text);
  const form = payload?.[`${entity}Form`];
  if (form !== undefined && form !== null) return fromForm(form);
  return payload?.[entity];
}
/** Checks the envelope every stored entity has. */
export function assertEntityEnvelope(value, { name = "entity", idPattern = /^[a-z0-9][a-z0-9-]*$/, maxLength = 65_536 } = {}) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TypeError(`${name} must be an object`);
  if (typeof value.id !== "string" || !idPattern.test(value.id)) throw new TypeError(`${name}.id does not match ${idPattern}`);
  if (value.schemaVersion !== 1) throw new TypeError(`${name}.schemaVersion must be 1`);
  if (JSON.stringify(value).length > maxLength) throw new RangeError(`${name} is larger than ${maxLength} characters`);
  return value;
}
/** A signal that aborts with `signal` or after `ms`. */
export function abortSignalWithTimeout(signal, ms) {
  const timeout = AbortSignal.timeout(ms);
  return signal === undefined || signal === null ? timeout : AbortSignal.any([signal, timeout]);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const isUuid = (value) => typeof value === "string" && UUID.test(value);
const isInstant = (value) => typeof value === "string" && INSTANT.test(value);
/** A copy without the bookkeeping a model has no use for: session, UUID ids, time stamps. */
export function modelFacingJson(value) {
  if (Array.isArray(value)) return value.map(modelFacingJson);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([key, member]) => {
    if (key === "sessionId") return false;
    if ((key === "id" || key.endsWith("Id")) && isUuid(member)) return false;
    if (key.endsWith("Ids") && Array.isArray(member) && member.length > 0 && member.every(isUuid)) return false;
    return !((key === "timestamp" || key.endsWith("At")) && isInstant(member));
  });
  return Object.fromEntries(kept.map(([key, member]) => [key, modelFacingJson(member)]));
}

const CJK = /[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\u{20000}-\u{3ffff}]/u;
/** About how many tokens a text is: one for each CJK character, one for four others. */
export function estimateTokens(text) {
  let cjk = 0;
  let other = 0;
  for (const character of String(text)) {
    if (CJK.test(character)) cjk++;
    else other++;
  }
  return cjk + Math.ceil(other / 4);
}

/** Names no plugin tool may have. */
export const FRAMEWORK_TOOL_NAMES = Object.freeze([
  "create-form", "create-choices", "create-notification", "render-ui", "plugin-data-set", "plugin-data-set-batch", "plugin-data-get",
  "plugin-data-list", "create-character", "update-character", "sync-characters", "list-characters", "get-character",
  "get-character-schema", "world-dimension-get", "world-dimension-list", "emit-event", "memory-search", "suspend", "runtime-done",
  "search-tools",
]);

/** The value a key has for this execution: the plugin's last pending write, else what is stored. */
export function overlayPluginDataValue(proposals, pluginId, namespace, key, stored) {
  return proposals.reduce((found, proposal) => {
    if (proposal.source?.pluginId !== pluginId) return found;
    const { type, payload } = proposal;
    const items = type === "plugin.data.batch" ? (payload.items ?? []) : [payload];
    return items.reduce((value, item) => {
      if (item.namespace !== namespace || item.key !== key) return value;
      if (type === "plugin.data.delete") return { deleted: true, value: undefined };
      return type === "plugin.data" || type === "plugin.data.batch" ? { deleted: false, value: item.value } : value;
    }, found);
  }, { deleted: false, value: stored });
}
/** Rows of a namespace with pending writes laid over, keyed by `[namespace, key]`. */
export function overlayPluginDataRows(proposals, pluginId, rows) {
  const byKey = new Map(rows.map((row) => [JSON.stringify([row.namespace, row.key]), row]));
  for (const { type, payload, source } of proposals) {
    if (source?.pluginId !== pluginId) continue;
    for (const item of type === "plugin.data.batch" ? (payload.items ?? []) : [payload]) {
      const key = JSON.stringify([item.namespace, item.key]);
      if (type === "plugin.data.delete") byKey.delete(key);
      else if (type === "plugin.data" || type === "plugin.data.batch") byKey.set(key, { ...byKey.get(key), ...item });
    }
  }
  return byKey;
}
