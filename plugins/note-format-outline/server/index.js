import { format } from "./format.js";

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function formatter(covel) {
  const { z } = covel.toolkit;
  covel.registerService({
    name: "format",
    contract: "examples.note-format@1",
    description: "Formats a note as an outline: one bullet for each sentence.",
    input: z.object({ text: z.string().max(20_000) }),
    output: z.object({ text: z.string() }),
    handler: async ({ text }) => ({ text: format(text) }),
  });
}
