import { instructionLocaleFor } from "./i18n.js";

/**
 * A loader over a reader of text files: `<name>.md` in English, `<name>.zh.md` in Chinese. SDK-3
 * @param {string} folder
 * @param {(path: string) => string | undefined} readText
 * @returns {import("./prompts.js").PromptLoader}
 */
export function loaderOf(folder, readText) {
  /** @type {Map<string, string | undefined>} */
  const kept = new Map();
  /** @param {string} path */
  const read = (path) => {
    if (!kept.has(path)) kept.set(path, readText(path));
    return kept.get(path);
  };
  /** @param {string} name @param {string=} locale */
  const load = (name, locale) => {
    if (!/^[\w-]+(\/[\w-]+)*$/.test(name)) throw new TypeError(`${name} is not the name of a prompt`);
    const base = folder === "" ? name : `${folder}/${name}`;
    const text = (instructionLocaleFor(locale) === "zh" ? read(`${base}.zh.md`) : undefined) ?? read(`${base}.md`);
    if (text === undefined) throw new Error(`the package has no prompt ${base}.md`);
    return text;
  };
  return Object.freeze(Object.assign(load.bind(undefined), { load }));
}
