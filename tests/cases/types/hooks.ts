import type { PluginEntryFactory } from "@covel/plugin-handlers-utils";

export const entry: PluginEntryFactory = (covel) => {
  covel.on("BeforeTurn", () => undefined); //~ TS2345 "BeforeTurn"
  covel.on("TurnStart", (_ctx, payload) => console.log(payload.toolCall)); //~ TS2339 toolCall
  covel.on("TurnStop", () => ({ action: "continue", replace: { durationMs: 0 } })); //~ TS2322 replace
  covel.on("PreToolUse", () => ({ action: "abort" })); //~ TS2322 reason
  covel.on("PreToolUse", () => ({ action: "stop" })); //~ TS2322 "stop"
  covel.on("PreLLMCall", () => ({ action: "continue", replace: { stream: true } })); //~ TS2322 true
  covel.on("PreToolUse", () => undefined, { enforce: "first" }); //~ TS2322 "first"
  covel.on("PreStateCommit", (ctx) => ctx.activePluginIds.add("x")); //~ TS2339 add
};
