// The shapes of the guides, with types.

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function (covel) {
  const { z } = covel.toolkit;
  covel.provideExtension("prompt.segment@1", "direction", {
    handler: (_input, ctx) => [
      { id: "direction", content: `Locale: ${ctx.locale}`, position: "system", audience: "self", volatility: "turn" },
    ],
  });
  const cache = new Map();
  const timer = setInterval(() => cache.clear(), 60_000);
  covel.onDispose(() => {
    clearInterval(timer);
    cache.clear();
  });
  covel.registerService({
    name: "rank",
    contract: "my-plugin.rank@1",
    input: z.object({ candidates: z.array(z.string()).min(1) }),
    output: z.object({ selected: z.string() }),
    async handler(input, ctx) {
      ctx.signal.throwIfAborted();
      return { selected: input.candidates[0] };
    },
  });
  covel.registerService({
    name: "change",
    contract: "inventory.change@1",
    access: "write",
    modelFacing: true,
    description: "Pay coins and add an item to the player's bag.",
    input: z.object({ item: z.string(), cost: z.number().int().min(0) }),
    output: z.object({ coins: z.number() }),
    async handler({ item, cost }, ctx) {
      await ctx.pluginData.set("items", item, { owned: true });
      await ctx.pluginData.update("purse", "coins", [{ op: "inc", path: "/amount", by: -cost, min: 0 }]);
      const purse = await ctx.pluginData.get("purse", "coins");
      return { coins: purse.amount };
    },
  });
  covel.on("PreToolUse", (ctx, { toolCall }) => {
    if (ctx.activePluginIds.has("guard") && toolCall.name === "forbidden") return { action: "abort", reason: "not here" };
    return { action: "continue", replace: { toolCall: { arguments: "{}" } } };
  }, { enforce: "pre", match: ({ toolCall }) => toolCall.name !== "runtime-done" });
  covel.on("TurnStop", (_ctx, { durationMs }) => console.log(durationMs));
  covel.registerFormValidator("age", (values) => (values.age < 0 ? { field: "age", message: "Too young." } : undefined));
  covel.registerWires({
    text: [{
      id: "converse",
      label: "Acme Converse",
      async generateText(config, params) {
        const response = await covel.http.fetchWithRetry(`${config.baseUrl}/converse`, {
          method: "POST", headers: { authorization: `Bearer ${config.apiKey}` }, body: JSON.stringify(params), signal: config.signal,
        });
        const body = await response.json();
        return { text: body.output, finishReason: body.stopReason, usage: { inputTokens: body.in, outputTokens: body.out } };
      },
      async *streamText() {
        yield { type: "text-delta", textDelta: "x" };
        yield { type: "done", finishReason: "stop" };
      },
    }],
  });
}
