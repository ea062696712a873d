import { makeProposal } from "@covel/plugin-handlers-utils";

/** Notes kept for one quest; the oldest go first. */
const MAX_NOTES = 20;

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function questLog(covel) {
  const { tool, withPendingProposals, z } = covel.toolkit;
  const id = z.string().regex(/^[a-z][a-z0-9-]{0,47}$/).describe("Short id: lowercase letters, digits and dashes");

  /**
   * @typedef {import("@covel/plugin-handlers-utils").ToolContext} ToolContext
   * @typedef {{ id: string, title: string, summary: string, status: "open" | "done" | "failed", notes: string[], turn: number }} Quest
   */
  /** @param {ToolContext} ctx @param {Quest} quest */
  const write = (ctx, quest) =>
    makeProposal(ctx, new Date().toISOString(), "plugin.data", { namespace: "quests", key: quest.id, value: quest });
  /** @param {ToolContext} ctx @param {string} key @returns {Promise<Quest | null>} */
  const read = async (ctx, key) => (await ctx.store?.getPluginData("quests", key))?.value ?? null;

  covel.registerTool(
    tool({
      name: "quest-add",
      description: "Add a quest the story has just given the player.",
      parameters: z.object({
        id,
        title: z.string().min(1).max(80).describe("What the player would write in a notebook"),
        summary: z.string().max(400).default("").describe("Who wants it and why"),
      }),
      async execute({ id: key, title, summary }, ctx) {
        if (await read(ctx, key)) return { success: true, existed: true, id: key };
        /** @type {Quest} */
        const quest = { id: key, title, summary, status: "open", notes: [], turn: ctx.logicalTurn ?? 1 };
        return withPendingProposals({ success: true, existed: false, id: key }, [write(ctx, quest)]);
      },
    }),
  );

  covel.registerTool(
    tool({
      name: "quest-update",
      description: "Move a quest on, or close it.",
      parameters: z.object({
        id,
        status: z.enum(["open", "done", "failed"]).optional().describe("Only when it changes"),
        note: z.string().min(1).max(400).optional().describe("What the player learned or did"),
      }),
      async execute({ id: key, status, note }, ctx) {
        const quest = await read(ctx, key);
        if (!quest) return { success: false, code: "EXECUTION_ERROR", error: `There is no quest ${key}.` };
        const notes = note === undefined ? quest.notes : [...quest.notes, note].slice(-MAX_NOTES);
        const next = { ...quest, status: status ?? quest.status, notes, turn: ctx.logicalTurn ?? quest.turn };
        return withPendingProposals({ success: true, id: key, status: next.status }, [write(ctx, next)]);
      },
    }),
  );
}
