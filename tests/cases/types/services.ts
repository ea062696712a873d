import type { FunctionHandler, PluginEntryFactory } from "@covel/plugin-handlers-utils";

export const entry: PluginEntryFactory = (covel) => {
  const { z } = covel.toolkit;
  const [input, output] = [z.object({ n: z.number() }), z.object({ text: z.string() })];
  covel.registerService({ name: "a", contract: "a.b@1", input, output, handler: ({ m }) => ({ text: String(m) }) }); //~ TS2339 'm'
  covel.registerService({ name: "b", contract: "a.b@1", input, output, handler: ({ n }) => ({ text: n }) }); //~ TS2769 text
  covel.registerService({
    name: "c",
    contract: "a.b@1",
    input,
    output,
    async handler(_input, ctx) {
      await ctx.pluginData.set("n", "k", 1); //~ TS2339 set
      return { text: "" };
    },
  });
  covel.registerService({
    name: "d",
    contract: "a.b@1",
    access: "write",
    input,
    output,
    async handler(_input, ctx) {
      await ctx.gateway.generateText({ prompt: "x" }); //~ TS2339 gateway
      return { text: "" };
    },
  });
  covel.registerService({ name: "e", contract: "a.b@1", access: "admin", input, output, handler: () => ({ text: "" }) }); //~ TS2769 "admin"
};
export const caller: FunctionHandler = async (ctx) => {
  await ctx.services.call({ pluginId: "p", contract: "a.b@1", input: {} }); //~ TS2345 name
  await ctx.services.call({ contract: "a.b@1", input: {} }, { timeout: 5 }); //~ TS2561 timeoutMs
  return { outcome: "success" };
};
