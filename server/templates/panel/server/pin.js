import { shortId } from "@covel/plugin-handlers-utils";

/** Longest note. */
const MAX_TEXT = 200;

/** @type {import("@covel/plugin-handlers-utils").FunctionHandler} */
export default async function pin(ctx) {
  const text = String(ctx.manualPayload?.text ?? "").trim().slice(0, MAX_TEXT);
  if (text === "") return { outcome: "skipped", skipReason: "there is nothing to pin" };

  const id = shortId("note", text, ctx.sessionId, ctx.random);
  await ctx.pluginData.set("notes", id, { text, done: false });
  return { outcome: "success", value: { id } };
}
