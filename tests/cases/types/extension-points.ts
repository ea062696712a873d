import type { PluginEntryFactory } from "@covel/plugin-handlers-utils";

export const entry: PluginEntryFactory = (covel) => {
  covel.provideExtension("prompt.segment@2", "old", { handler: () => [] }); //~ TS2345 "prompt.segment@2"
  covel.provideExtension("prompt.segment@1", "a", {
    handler: () => [{ id: "a", content: "x", position: "middle" }], //~ TS2322 "middle"
  });
  covel.provideExtension("prompt.segment@1", "b", { handler: () => ({ id: "b" }) }); //~ TS2322 PromptSegment
  covel.provideExtension("prompt.segment@1", "c", {
    handler: (input) => [{ id: input.messages, content: "x", position: "system" }], //~ TS2339 messages
  });
  covel.provideExtension("prompt.history-transform@1", "d", { handler: ({ messages }) => messages }); //~ TS2322 messages
  covel.provideExtension("ui.slot@1", "e", { handler: () => undefined }); //~ TS2322 undefined
  covel.provideExtension("history.compact@2", "f", {
    handler: ({ messages }) => ({ summaries: [{ messageIds: messages, replacesSummaryIds: [], content: "", focusSections: [] }] }), //~ TS2322 HistoryMessage
  });
  covel.provideExtension("session.world-context@1", "g", {
    async handler(_input, ctx) {
      await ctx.pluginData.set("a", "b", 1); //~ TS2339 set
      ctx.world.seats.push({ id: "x" }); //~ TS2339 push
      return {};
    },
  });
};
