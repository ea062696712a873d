import { readPackageText } from "covel:package";
import { instructionLocaleFor } from "./i18n.js";

/**
 * Loads prompt templates of a package from a folder: `<name>.md` in English, `<name>.zh.md` in Simplified Chinese. `root` is
 * a path inside the package or a URL made from `import.meta.url`.
 */
export function createPromptLoader(root) {
  const folder = decodeURIComponent(String(root).replace(/^file:\/\//, "")).replace(/^\/+|\/+$/g, "");
  const kept = new Map();
  const read = (path) => {
    if (!kept.has(path)) kept.set(path, readPackageText(path));
    return kept.get(path);
  };
  const load = (name, locale) => {
    if (!/^[\w-]+(\/[\w-]+)*$/.test(name)) throw new TypeError(`${name} is not the name of a prompt`);
    const base = folder === "" ? name : `${folder}/${name}`;
    const text = (instructionLocaleFor(locale) === "zh" ? read(`${base}.zh.md`) : undefined) ?? read(`${base}.md`);
    if (text === undefined) throw new Error(`the package has no prompt ${base}.md`);
    return text;
  };
  return Object.freeze(Object.assign((name, locale) => load(name, locale), { load }));
}
