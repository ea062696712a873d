// Prompt templates under Node.js, where an author tries things out. A path counts from the working folder.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loaderOf } from "./prompt-loader.js";

/** @type {typeof import("./prompts.js").createPromptLoader} */
export function createPromptLoader(root) {
  const text = String(root);
  const folder = text.startsWith("file:") ? fileURLToPath(text) : text;
  return loaderOf(folder.replace(/(?<=.)\/+$/, ""), (path) => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code === "ENOENT") return undefined;
      throw error;
    }
  });
}
