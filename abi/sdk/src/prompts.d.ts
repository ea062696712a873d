export interface PromptLoader {
  (name: string, locale?: string): string;
  load(name: string, locale?: string): string;
}
export function createPromptLoader(root: string | URL): PromptLoader;
