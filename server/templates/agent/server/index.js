import { makeProposal, wordId } from "@covel/plugin-handlers-utils";

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function register(covel) {
  const { tool, withPendingProposals, z } = covel.toolkit;

  covel.registerTool(
    tool({
      name: "note-add",
      description: "Note something the player should not forget.",
      parameters: z.object({
        title: z.string().min(1).max(80).describe("A few words"),
        text: z.string().min(1).max(400).describe("What to remember, in a sentence"),
      }),
      async execute({ title, text }, ctx) {
        const key = wordId("note", title);
        if ((await ctx.store?.getPluginData("notes", key)) != null) return { success: true, existed: true, id: key };
        const value = { title, text, turn: ctx.logicalTurn ?? 1 };
        const write = makeProposal(ctx, new Date().toISOString(), "plugin.data", { namespace: "notes", key, value });
        return withPendingProposals({ success: true, existed: false, id: key }, [write]);
      },
    }),
  );
}
