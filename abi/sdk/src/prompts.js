// Prompt templates inside the host: files of the package, whatever machine it is on.
import { readPackageText } from "covel:package";
import { loaderOf } from "./prompt-loader.js";

/** @type {typeof import("./prompts.js").createPromptLoader} */
export function createPromptLoader(root) {
  const folder = decodeURIComponent(String(root).replace(/^file:\/\//, "")).replace(/^\/+|\/+$/g, "");
  return loaderOf(folder, readPackageText);
}
