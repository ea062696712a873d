/** Texts by name: `<name>.md` in English, `<name>.zh.md` in Chinese where there is one. Throws when there is neither. */
export interface PromptLoader {
  (name: string, locale?: string): string;
  load(name: string, locale?: string): string;
}
/** Loads prompt templates from a folder of the package: a path from its root, or `new URL("./prompts/", import.meta.url)`. */
export function createPromptLoader(root: string | URL): PromptLoader;
