// Bundles what isolates load: `node build.mjs OUT_DIR`. Writes one file per host module and `modules.json`, which maps
// module names (as plugin code imports them) to files.
import { build } from "esbuild";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "dist"));
const sdk = resolve(here, "../sdk/src");

const hostModules = {
  "covel:kernel": join(here, "src/kernel.js"),
  "covel:buffer": join(here, "src/buffer.js"),
  "covel:package": join(here, "src/package.js"),
  "covel:offered-toolkit": join(here, "src/toolkit.js"),
  "covel:url": join(here, "src/url.js"),
  "covel:encoding": join(here, "src/encoding.js"),
  "covel:intl": join(here, "src/intl/index.js"),
  zod: join(here, "src/zod.js"),
  "node:assert": join(here, "src/node/assert.js"),
  "node:buffer": join(here, "src/node/buffer.js"),
  "node:crypto": join(here, "src/node/crypto.js"),
  "node:path": join(here, "src/node/path.js"),
  "node:timers": join(here, "src/node/timers.js"),
  "node:url": join(here, "src/node/url.js"),
  "node:util": join(here, "src/node/util.js"),
};
const sdkModules = {
  "covel:toolkit": join(sdk, "toolkit.js"),
  "@covel/plugin-handlers-utils": join(sdk, "index.js"),
  "@covel/plugin-handlers-utils/extension-points": join(sdk, "extension-points.js"),
  "@covel/plugin-handlers-utils/plugin-api": join(sdk, "plugin-api.js"),
  "@covel/plugin-handlers-utils/dimensions": join(sdk, "dimensions.js"),
  "@covel/plugin-handlers-utils/prompts": join(sdk, "prompts.js"),
};
const fileOf = (name) => name.replace(/[^a-z0-9]+/gi, "-").replace(/^-+/, "");

// Zod carries fifty languages; messages here are English.
const englishOnly = {
  name: "english-only",
  setup(b) {
    b.onResolve({ filter: /locales\/index\.js$/ }, (args) =>
      args.importer.includes("zod") ? { path: "locales", namespace: "zod-locales" } : undefined);
    b.onLoad({ filter: /.*/, namespace: "zod-locales" }, () => ({
      contents: `export { default as en } from "zod/v4/locales/en.js";`,
      resolveDir: here,
      loader: "js",
    }));
  },
};

const common = {
  bundle: true,
  format: "esm",
  platform: "neutral",
  mainFields: ["module", "main"],
  conditions: ["import", "default"],
  target: "es2023",
  charset: "utf8",
  minifyWhitespace: true,
  minifySyntax: true,
  keepNames: false,
  legalComments: "none",
  outdir: out,
  logLevel: "warning",
  nodePaths: [join(here, "node_modules")],
};

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
for (const [name, file] of Object.entries(hostModules)) {
  await build({
    ...common,
    entryPoints: [{ in: file, out: fileOf(name) }],
    external: ["covel:toolkit", "covel:kernel", "package:*"],
    plugins: [englishOnly],
    define: { global: "globalThis", "process.env.NODE_ENV": '"production"' },
  });
}
await build({
  ...common,
  entryPoints: Object.entries(sdkModules).map(([name, file]) => ({ in: file, out: fileOf(name) })),
  splitting: true,
  chunkNames: "sdk-[hash]",
  external: ["zod", "node:*", "covel:package"],
});
const modules = Object.fromEntries([...Object.keys(hostModules), ...Object.keys(sdkModules)].map((name) => [name, `${fileOf(name)}.js`]));
for (const file of await readdir(out)) {
  // Shared pieces are imported relatively by their siblings; hosts name them by file.
  if (file.startsWith("sdk-")) modules[`covel:${file}`] = file;
}
await writeFile(join(out, "modules.json"), JSON.stringify(modules, null, 1));
