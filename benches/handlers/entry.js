// What an entry of some size loads: the author's library, zod, and a tool made with it.
import { translate } from "@covel/plugin-handlers-utils";
import { z } from "zod";

const parameters = z.object({ id: z.string().regex(/^[a-z-]+$/), title: z.string().max(80), tags: z.array(z.string()).max(8).default([]) });

export default function register(covel) {
  covel.registerTool(
    covel.toolkit.tool({ name: "note-add", description: "Adds a note.", parameters, execute: ({ title }, ctx) => translate(ctx, title) }),
  );
}
