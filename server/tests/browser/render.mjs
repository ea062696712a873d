// Draws Mermaid charts in a real browser. Usage: node render.mjs CHROMIUM CHART..., charts being files.
// Prints one JSON document: for each chart the labels of its nodes, clusters and edges as they are seen.
// Ends with 1 and a sentence when a chart cannot be drawn or wants something from the network.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { launch } from "./launch.mjs";

const [executablePath, ...charts] = process.argv.slice(2);
const browser = await launch(executablePath);
try {
  const page = await browser.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => complaints.push(`asked for ${request.url()}`));
  page.on("dialog", (dialog) => {
    complaints.push(`said ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.setContent("<!doctype html><main></main>");
  await page.addScriptTag({ path: "node_modules/mermaid/dist/mermaid.min.js" });
  const drawn = [];
  for (const [place, chart] of charts.entries()) {
    const text = await readFile(chart, "utf8");
    drawn.push(
      await page.evaluate(
        async ([text, id]) => {
          window.mermaid.initialize({ startOnLoad: false, maxTextSize: 1_000_000, maxEdges: 10_000 });
          const { svg } = await window.mermaid.render(id, text);
          const main = document.querySelector("main");
          main.innerHTML = svg;
          const labels = (selector) => [...main.querySelectorAll(selector)].map((element) => element.textContent.trim());
          return {
            nodes: labels(".node"),
            clusters: labels(".cluster-label"),
            edges: labels(".edgeLabels .edgeLabel .label"),
            paths: main.querySelectorAll(".edgePaths path").length,
            scripts: main.querySelectorAll("script, iframe, img, a").length,
          };
        },
        [text, `chart${place}`],
      ),
    );
  }
  assert.deepEqual(complaints, [], "drawing asks nothing of anybody");
  console.log(JSON.stringify(drawn));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
