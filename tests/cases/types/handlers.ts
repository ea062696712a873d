import type { FunctionHandler, GuardHandler } from "@covel/plugin-handlers-utils";

export const unknownOutcome: FunctionHandler = () => ({ outcome: "done" }); //~ TS2322 "done"
export const noReason: FunctionHandler = async () => ({ outcome: "skipped" }); //~ TS2322 skipReason
export const noError: FunctionHandler = () => ({ outcome: "failed" }); //~ TS2322 error
export const unknownChannel: FunctionHandler = () => ({ outcome: "success", effects: { emails: [] } }); //~ TS2322 emails
export const noTopic: FunctionHandler = () => ({ outcome: "success", effects: { events: [{ data: 1 }] } }); //~ TS2322 topic
export const writesWhenSkipped: FunctionHandler = () => ({ outcome: "skipped", skipReason: "", effects: { events: [] } }); //~ TS2322 events
export const badPatch: FunctionHandler = () => ({ outcome: "success", effects: { statePatches: [{ table: "t", value: 1 }] } }); //~ TS2322 field
const fields = [{ type: "date" as const, name: "d", label: "D" }];
const form = { type: "form" as const, interactionId: "f", title: "T", fields };
export const badForm: FunctionHandler = () => ({ outcome: "success", effects: { interactions: [form] } }); //~ TS2322 "date"
export const badOps: FunctionHandler = async (ctx) => {
  await ctx.pluginData.update("n", "k", [{ op: "increment", path: "/n", by: 1 }]); //~ TS2322 "increment"
  await ctx.pluginData.update("n", "k", [{ op: "inc", path: "/n" }]); //~ TS2322 by
  await ctx.tools.call(3); //~ TS2345 number
  ctx.world.characters[0].name.toFixed(); //~ TS2551 toFixed
  ctx.playerMessage = "other"; //~ TS2540 playerMessage
  ctx.fetch("https://example.com"); //~ TS2339 fetch
  return { outcome: "success" };
};
export const guardWithoutAnswer: GuardHandler = async () => ({ skip: "no" }); //~ TS2322 string
export const guardThatWrites: GuardHandler = async (ctx) => {
  await ctx.pluginData.set("n", "k", 1); //~ TS2339 set
  await ctx.tools.call("x"); //~ TS2339 tools
  return { skip: false };
};
