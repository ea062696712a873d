// Handlers that say what they get.
import { actingCharacterOf, createForm, definePluginless, makeProposal, withPendingProposals } from "./right-names.ts";
import type { FunctionHandler, GuardHandler, OneInput } from "@covel/plugin-handlers-utils";
import { createPromptLoader } from "@covel/plugin-handlers-utils/prompts";
import { materializeDimensions } from "@covel/plugin-handlers-utils/dimensions";
import { EXTENSION_POINTS, isExtensionPoint } from "@covel/plugin-handlers-utils/extension-points";
import { createHash } from "node:crypto";
import { basename } from "node:path";

definePluginless();
const prompts = createPromptLoader(new URL("./prompts/", import.meta.url));
export const timeouts = Object.keys(EXTENSION_POINTS).filter(isExtensionPoint).map((id) => EXTENSION_POINTS[id].timeoutMs);
export const tide = materializeDimensions({})["tide"]?.value;

interface Inputs {
  scene?: OneInput<string>;
}
export const handler: FunctionHandler<Inputs, { limit: number }> = async (ctx) => {
  const scene: string | undefined = ctx.inputs.scene?.value;
  const limit: number = ctx.userSettings.limit;
  const acting = actingCharacterOf(ctx.playerActions, ctx.world.characters, ctx.world.seats);
  const digest: string = createHash("sha256").update(basename(scene ?? "")).digest("hex");
  ctx.progress.report({ state: "running", progress: 0.5 });
  if (limit > 3) return { outcome: "suspended", reason: "asks", resumeSchema: { type: "object" } };
  const form = createForm({ interactionId: "f", title: prompts("title"), fields: [{ type: "number", name: "age", label: "Age", min: 0 }] });
  const result = {
    outcome: "success" as const,
    value: { digest, who: acting?.name },
    effects: {
      interactions: [form],
      characters: [{ id: "ann", expectedVersion: 1, fields: { hp: 3 } }],
      pluginData: [{ namespace: "n", key: "k", ops: [{ op: "inc" as const, path: "/n", by: 1 }] }],
    },
  };
  return withPendingProposals(result, [makeProposal(ctx, "", "plugin.data.delete", { namespace: "n", key: "old" })]);
};
export const guard: GuardHandler = async (ctx) => ((await ctx.pluginData.get("done", "all")) ? { skip: true, text: "" } : { skip: false });
