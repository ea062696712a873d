import { en, type MessageKey } from "../i18n/en";

/** A stage's name for players; stages that the page does not know keep their own. */
export function stageName(stage: string, t: (key: MessageKey) => string): string {
  const key = `stage.${stage}`;
  return Object.hasOwn(en, key) ? t(key as MessageKey) : stage;
}

/** A runtime's name beside its plugin's: `quest-log/record` is shown as `record` where the plugin stands next to it. */
export function shortRuntime(runtimeId: string, pluginId: string): string {
  return runtimeId.startsWith(`${pluginId}/`) ? runtimeId.slice(pluginId.length + 1) : runtimeId;
}
