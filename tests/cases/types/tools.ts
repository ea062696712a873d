import { makeProposal, tool } from "@covel/plugin-handlers-utils";
import type { PluginEntryFactory, ToolContext } from "@covel/plugin-handlers-utils";

export const entry: PluginEntryFactory = (covel) => {
  const { tool: make, z } = covel.toolkit;
  covel.registerTool({ name: "a" }); //~ TS2345 _type
  covel.registerTool(make({ name: "b", description: "b", parameters: { n: "number" }, execute: () => 1 })); //~ TS2353 ZodType
  covel.registerTool(make({ name: "c", description: "c", parameters: z.object({ n: z.number() }), execute: ({ m }) => m })); //~ TS2339 m
  covel.registerTool(tool({ name: "d", parameters: z.object({}), execute: () => 1 })); //~ TS2741 description
  covel.registerTool(tool({
    name: "e",
    description: "e",
    parameters: z.object({}),
    execute: async (_params, ctx) => ctx.store.getPluginData("n", "k"), //~ TS18048 ctx.store
  }));
  covel.registerAction("a", () => 1); //~ TS2339 registerAction
  covel.registerRpc("a", (_payload, ctx) => ctx.pluginData); //~ TS2551 pluginData
  covel.registerWires({ text: [{ id: "a", generateText: async () => ({ text: "", finishReason: "stop" }) }] }); //~ TS2741 streamText
  covel.registerFormValidator("a", async () => "no"); //~ TS2322 Promise
};
export function proposals(ctx: ToolContext) {
  makeProposal(ctx, "", "plugin.datum", {}); //~ TS2345 "plugin.datum"
  makeProposal(ctx, "", "plugin.data", { namespace: "n", value: 1 }); //~ TS2741 key
  makeProposal(ctx, "", "lorebook.upsert", { entries: [{ id: "a", content: "b", strategy: "always" }] }); //~ TS2322 "always"
}
