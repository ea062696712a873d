// The handlers of `benches/handlers` under Node.js: `node host.mjs` in a folder that holds them, and `node_modules` as
// `covel new` lays it out. Prints one JSON document: microseconds by name.
// zod is part of what is timed, so nothing is imported before.

const before = performance.now();
const { z } = await import("zod");
const entry = await import("./handlers/entry.js");
const { tool } = await import("@covel/plugin-handlers-utils");
entry.default({ registerTool() {}, toolkit: { tool, z } });
const figures = { entry: (performance.now() - before) * 1000 };

const handlers = {};
for (const name of ["warm", "read", "data"]) handlers[name] = (await import(`./handlers/${name}.js`)).default;

const median = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
async function measure(name, each, run) {
  for (let at = 0; at < 200; at++) await run();
  const times = [];
  for (let batch = 0; batch < 21; batch++) {
    const start = performance.now();
    for (let at = 0; at < each; at++) await run();
    times.push(((performance.now() - start) * 1000) / each);
  }
  figures[name] = median(times);
}

await measure("warm", 2000, () => handlers.warm({ logicalTurn: 1 }));
for (const [size, rows] of [["1 KB", 10], ["10 KB", 100], ["100 KB", 1000]]) {
  const row = (at) => ({ id: `row-${at}`, name: `Name ${at}`, n: at, text: "x".repeat(50) });
  const text = JSON.stringify({ logicalTurn: 0, inputs: { doc: { cardinality: "one", value: { rows: Array.from({ length: rows }, (_, at) => row(at)) } } } });
  const shared = JSON.parse(text);
  for (const share of [0, 10, 100]) {
    await measure(`${size}, ${share} % by reference`, 500, () => handlers.read({ ...shared, logicalTurn: share }));
    // As a host would that keeps plugin code apart: text in, text out.
    await measure(`${size}, ${share} % as text`, 200, async () => JSON.stringify(await handlers.read({ ...JSON.parse(text), logicalTurn: share })));
  }
}
const records = new Map(Array.from({ length: 100 }, (_, at) => [`log k${at}`, JSON.stringify({ n: at })]));
const pluginData = { get: async (namespace, key) => JSON.parse(records.get(`${namespace} ${key}`) ?? "null") };
await measure("data", 1, () => handlers.data({ pluginData }));
figures.data /= 1000;
console.log(JSON.stringify(figures));
