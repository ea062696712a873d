// An uncompiled file is imported by its real name, `.ts` included.
export { actingCharacterOf, createForm, makeProposal, withPendingProposals } from "@covel/plugin-handlers-utils";
export function definePluginless(): void {}
