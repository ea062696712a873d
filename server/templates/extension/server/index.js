import { promptBlock } from "@covel/plugin-handlers-utils";

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function register(covel) {
  covel.provideExtension("prompt.segment@1", "reminder", {
    async handler(_input, ctx) {
      const promise = await ctx.pluginData.get("promises", "last");
      if (promise === null) return [];
      return [
        {
          id: "reminder",
          content: promptBlock("promise", promise.text, { turn: promise.turn }),
          position: "system",
          audience: "story",
          volatility: "turn",
        },
      ];
    },
  });
}
