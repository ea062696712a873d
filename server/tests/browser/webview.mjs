// A package's own HTML in a real browser: what it may do works, what it must not do is refused, and the page stays whole.
// Usage: node webview.mjs ADDRESS CHROMIUM PICTURE. Ends with 1 and a sentence when something is not so.

import assert from "node:assert/strict";
import { launch } from "./launch.mjs";

const [given, executablePath, picture] = process.argv.slice(2);
const address = given.replace(/\/$/, "");
const FAILED = "Plugin UI action failed";
const browser = await launch(executablePath);
try {
  const answer = await fetch(`${address}/api/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ plugins: ["narrator", "quest-log", "rogue-panel"], locale: "en" }),
  });
  assert.equal(answer.status, 201, await answer.clone().text());
  const session = await answer.json();

  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, locale: "en-GB", colorScheme: "light" });
  page.setDefaultTimeout(20_000);
  const failures = [];
  page.on("pageerror", (error) => failures.push(error.message));
  const outside = [];
  // Not `request`: that is told also of what the policy then stops.
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    if (response.frame() !== page.mainFrame() && pathname !== "/plugin-frame.html") outside.push(response.url());
  });
  const id = (name) => page.getByTestId(name);
  await page.goto(`${address}/#/play/${session.id}`);
  await page.getByRole("tab", { name: "Rogue" }).click();

  /** The inner of the two frames. */
  const inner = async () => {
    const outer = await (await page.locator("iframe.webview").elementHandle()).contentFrame();
    await page.waitForFunction(() => true);
    for (let tries = 0; outer.childFrames().length === 0 && tries < 200; tries += 1) await page.waitForTimeout(25);
    return outer.childFrames()[0];
  };
  let panel = await inner();
  await panel.waitForFunction(() => window.states.some((state) => state.theme));
  for (const [frame, name] of [[panel, "inner"], [panel.parentFrame(), "outer"]]) {
    assert.equal(await frame.evaluate(() => self.origin), "null", `the ${name} frame has an origin of its own`);
  }

  // The state: everything it may know, and nothing else.
  const state = await panel.evaluate(() => window.covel.getState());
  assert.deepEqual(Object.keys(state).sort(), ["context", "data", "locale", "locked", "theme", "uiState"]);
  assert.deepEqual(state.context, { surface: "panel" });
  assert.equal(Object.keys(state.theme.tokens).length, 15);
  for (const [token, value] of Object.entries(state.theme.tokens)) assert.notEqual(value, "", token);
  const colour = () => panel.evaluate(() => getComputedStyle(document.getElementById("told")).color);
  const light = await colour();
  await id("theme-toggle").click();
  await panel.waitForFunction((before) => getComputedStyle(document.getElementById("told")).color !== before, light);
  assert.equal(await panel.evaluate(() => document.documentElement.dataset.covelScheme), "dark");
  await id("theme-toggle").click();
  await panel.waitForFunction((before) => getComputedStyle(document.getElementById("told")).color === before, light);
  await panel.locator("#inline").click();
  assert.equal(await panel.locator("#inline").innerText(), "pressed", "inline handlers work");

  // What it must not do.
  const tried = await panel.evaluate((where) => window.tryAll(where), address);
  const { canvas, ...refused } = tried;
  assert.equal(canvas, "got true");
  for (const [attempt, outcome] of Object.entries(refused)) assert.equal(outcome, "refused", attempt);
  assert.equal(new URL(page.url()).hash, `#/play/${session.id}`, "the page is where it was");

  // Actions.
  const call = (action, params) => panel.evaluate(([name, given]) => window.call(name, given), [action, params]);
  for (const action of ["sendMessage", "__proto__", "constructor", "toString", "", "x".repeat(200)]) {
    assert.deepEqual(await call(action, {}), { error: FAILED }, action);
  }
  assert.deepEqual(await call("draftMessage", "not an object"), { error: FAILED });
  assert.deepEqual(await call("invokeRuntime", { runtimeId: "narrator", pluginId: "narrator" }), { error: FAILED });
  assert.deepEqual(await call("setUiState", { value: { page: 2 } }), { value: { status: "ok" } });
  assert.deepEqual(await call("setUiState", { value: "x".repeat(32 * 1024 - 1) }), { error: FAILED }, "33 KiB with quotes");
  await panel.waitForFunction(() => window.covel.getState().uiState?.page === 2);
  assert.deepEqual((await call("draftMessage", { text: "I look around." })).value, { status: "ok" });
  assert.equal(await id("composer").inputValue(), "I look around.");

  // The same instance, enlarged and back.
  await panel.evaluate(() => (window.mark = "mine"));
  await id("enlarge-rogue-panel").click();
  await page.locator("dialog.webview-dialog").waitFor();
  const tall = await page.locator("iframe.webview").evaluate((frame) => frame.clientHeight);
  assert.ok(tall > 500, `enlarged, it is ${tall} pixels high`);
  assert.equal(await panel.evaluate(() => window.mark), "mine", "enlarging does not load it anew");
  await page.keyboard.press("Escape");
  await page.locator("dialog.webview-home").waitFor();
  assert.equal(await panel.evaluate(() => window.mark), "mine");
  assert.equal(await page.evaluate(() => document.activeElement?.dataset.testid), "enlarge-rogue-panel", "the focus is back");

  // A turn: it is locked meanwhile, then its data is there.
  await id("composer").press("Enter");
  await panel.waitForFunction(() => window.states.some((state) => state.locked));
  await panel.waitForFunction(() => window.covel.getState().data.turns?.n >= 1 && !window.covel.getState().locked);
  assert.match(await panel.locator("#told").innerText(), /turns: 1/);
  await page.screenshot({ path: picture });

  // A document that loads again is not connected again.
  await panel.evaluate(() => void setTimeout(() => location.reload()));
  await page.waitForTimeout(300);
  panel = await inner();
  await panel.waitForFunction(() => typeof window.covel === "object" && window.states.length > 0);
  assert.deepEqual(await panel.evaluate(() => window.covel.getState()), {});
  assert.deepEqual(await call("draftMessage", { text: "again" }), { error: "The panel is not connected yet" });
  // And it cannot go anywhere else.
  await panel.evaluate((where) => void setTimeout(() => (location.href = `${where}/api/health`)), address);
  await page.waitForTimeout(300);
  const there = await (await inner()).evaluate(() => document.body?.innerText ?? "").catch(() => "");
  assert.doesNotMatch(there, /"status"/, "the network is out of reach");

  assert.deepEqual(outside, [], "no frame got anything from the network");
  assert.deepEqual(failures, [], "the page has no complaint");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
