import { format } from "./format.js";

/** @type {import("@covel/plugin-handlers-utils").PluginEntryFactory} */
export default function formatter(covel) {
  const { z } = covel.toolkit;
  covel.registerService({
    name: "format",
    contract: "examples.note-format@1",
    description: "Formats a note: tidy spaces, no empty lines in a row.",
    input: z.object({ text: z.string().max(20_000) }),
    output: z.object({ text: z.string() }),
    handler: async ({ text }) => ({ text: format(text) }),
  });
}
