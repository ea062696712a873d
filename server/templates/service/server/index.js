/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function register(covel) {
  const { z } = covel.toolkit;

  covel.registerService({
    name: "pick",
    contract: "__id__.pick@1",
    description: "Pick one of several texts.",
    input: z.object({ candidates: z.array(z.string().min(1)).min(1).max(100) }),
    output: z.object({ selected: z.string() }),
    async handler({ candidates }, ctx) {
      ctx.signal.throwIfAborted();
      return { selected: candidates[ctx.random.int(0, candidates.length)] };
    },
  });
}
