// Reading values of forms, settings and model output.

/** @type {typeof import("./values.js").normalizeRequiredString} */
export function normalizeRequiredString(value, name = "value") {
  const text = typeof value === "string" ? value.trim() : "";
  if (text === "") throw new TypeError(`${name} must be a non-empty string`);
  return text;
}
/** @type {typeof import("./values.js").normalizeOptionalString} */
export function normalizeOptionalString(value) {
  const text = typeof value === "string" ? value.trim() : "";
  return text === "" ? undefined : text;
}
/** @type {typeof import("./values.js").normalizeOptionalNumber} */
export function normalizeOptionalNumber(value) {
  if (typeof value === "string" && value.trim() === "") return undefined;
  const number = typeof value === "number" ? value : typeof value === "string" ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}
/** @type {typeof import("./values.js").normalizeOptionalInteger} */
export function normalizeOptionalInteger(value) {
  const number = normalizeOptionalNumber(value);
  return Number.isSafeInteger(number) ? number : undefined;
}
/** @type {typeof import("./values.js").normalizeOptionalString} */
export const optionalString = normalizeOptionalString;
/** @type {typeof import("./values.js").normalizeOptionalNumber} */
export const optionalNumber = normalizeOptionalNumber;
/** @type {typeof import("./values.js").normalizeOptionalInteger} */
export const optionalInteger = normalizeOptionalInteger;
/** @type {typeof import("./values.js").splitList} */
export function splitList(value) {
  const items = Array.isArray(value) ? value.filter((item) => typeof item === "string") : typeof value === "string" ? value.split(/[,，\r\n]/) : [];
  return items.map((item) => item.trim()).filter((item) => item !== "").slice(0, 32);
}
/** @type {typeof import("./values.js").compactRecord} */
export function compactRecord(value, { dropEmptyArrays = false } = {}) {
  return /** @type {any} */ (Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== undefined && !(dropEmptyArrays && Array.isArray(member) && member.length === 0)),
  ));
}
/** @type {typeof import("./values.js").readManualEntity} */
export function readManualEntity(payload, entity, fromForm) {
  const text = payload?.[`${entity}Json`];
  if (typeof text === "string" && text.trim() !== "") return JSON.parse(text);
  const form = payload?.[`${entity}Form`];
  if (form !== undefined && form !== null) return fromForm(form);
  return payload?.[entity];
}
/** @type {typeof import("./values.js").assertEntityEnvelope} */
export function assertEntityEnvelope(value, { name = "entity", idPattern = /^[a-z0-9][a-z0-9-]*$/, maxLength = 65_536 } = {}) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TypeError(`${name} must be an object`);
  const { id, schemaVersion } = /** @type {{ id?: unknown, schemaVersion?: unknown }} */ (value);
  if (typeof id !== "string" || !idPattern.test(id)) throw new TypeError(`${name}.id does not match ${idPattern}`);
  if (schemaVersion !== 1) throw new TypeError(`${name}.schemaVersion must be 1`);
  if (JSON.stringify(value).length > maxLength) throw new RangeError(`${name} is larger than ${maxLength} characters`);
  return value;
}
/** @type {typeof import("./values.js").abortSignalWithTimeout} */
export function abortSignalWithTimeout(signal, ms) {
  const timeout = AbortSignal.timeout(ms);
  return signal === undefined || signal === null ? timeout : AbortSignal.any([signal, timeout]);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
/** @param {unknown} value */
const isUuid = (value) => typeof value === "string" && UUID.test(value);
/** @param {unknown} value */
const isInstant = (value) => typeof value === "string" && INSTANT.test(value);
/** @type {typeof import("./values.js").modelFacingJson} */
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
/** @type {typeof import("./values.js").estimateTokens} */
export function estimateTokens(text) {
  let cjk = 0;
  let other = 0;
  for (const character of String(text)) {
    if (CJK.test(character)) cjk++;
    else other++;
  }
  return cjk + Math.ceil(other / 4);
}

/** @type {typeof import("./values.js").FRAMEWORK_TOOL_NAMES} */
export const FRAMEWORK_TOOL_NAMES = Object.freeze([
  "create-form", "create-choices", "create-notification", "render-ui", "plugin-data-set", "plugin-data-set-batch", "plugin-data-get",
  "plugin-data-list", "create-character", "update-character", "sync-characters", "list-characters", "get-character",
  "get-character-schema", "delegate", "world-dimension-get", "world-dimension-list", "emit-event", "memory-search", "suspend", "runtime-done",
  "search-tools",
]);

/** @param {import("./proposals.js").Proposal} proposal */
function writesOf(proposal) {
  switch (proposal.type) {
    case "plugin.data":
      return [{ ...proposal.payload, deleted: false }];
    case "plugin.data.batch":
      return (proposal.payload.items ?? []).map((item) => ({ ...item, deleted: false }));
    case "plugin.data.delete":
      return [{ ...proposal.payload, value: undefined, deleted: true }];
    default:
      return [];
  }
}
/** @type {typeof import("./values.js").overlayPluginDataValue} */
export function overlayPluginDataValue(proposals, pluginId, namespace, key, stored) {
  const last = proposals
    .filter(({ source }) => source?.pluginId === pluginId)
    .flatMap(writesOf)
    .findLast((write) => write.namespace === namespace && write.key === key);
  return last === undefined ? { deleted: false, value: stored } : { deleted: last.deleted, value: last.value };
}
/** @type {typeof import("./values.js").overlayPluginDataRows} */
export function overlayPluginDataRows(proposals, pluginId, rows) {
  const byKey = new Map(rows.map((row) => [JSON.stringify([row.namespace, row.key]), row]));
  for (const { deleted, ...item } of proposals.filter(({ source }) => source?.pluginId === pluginId).flatMap(writesOf)) {
    const key = JSON.stringify([item.namespace, item.key]);
    if (deleted) byKey.delete(key);
    else byKey.set(key, /** @type {any} */ ({ ...byKey.get(key), ...item }));
  }
  return byKey;
}
