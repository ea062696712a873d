/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function serviceProbe(covel) {
  const { z } = covel.toolkit;

  covel.registerService({
    name: "echo",
    contract: "probe.echo@1",
    modelFacing: true,
    description: "Answer with the text, who asked, and how often they counted.",
    input: z.object({ text: z.string().max(2_000).describe("Any text") }),
    output: z.object({ text: z.string(), caller: z.string(), count: z.number().int(), draw: z.number().int() }),
    async handler({ text }, ctx) {
      const tally = await ctx.pluginData.get("tallies", ctx.callerPluginId);
      return { text, caller: ctx.callerPluginId, count: tally?.count ?? 0, draw: ctx.random.int(1, 7) };
    },
  });

  covel.registerService({
    name: "tally",
    contract: "probe.tally@1",
    access: "write",
    description: "Count one call of the caller.",
    input: z.object({ limit: z.number().int().min(1).max(1_000_000).default(1_000_000) }),
    output: z.object({ count: z.number().int() }),
    async handler({ limit }, ctx) {
      const key = ctx.callerPluginId;
      if ((await ctx.pluginData.get("tallies", key)) === null) await ctx.pluginData.set("tallies", key, { count: 0 });
      // Beyond the limit this throws a `conflict`, and the call leaves nothing.
      await ctx.pluginData.update("tallies", key, [{ op: "inc", path: "/count", by: 1, max: limit }]);
      return { count: (await ctx.pluginData.get("tallies", key)).count };
    },
  });
}
