// Plays one story in a real browser: chooses the world, starts, sends a message, watches the text come, looks at the
// timeline and a panel. Usage: node drive.mjs ADDRESS CHROMIUM PICTURE. Ends with 1 and a sentence when something is not so.

import assert from "node:assert/strict";
import { launch } from "./launch.mjs";

const [address, executablePath, picture] = process.argv.slice(2);
const browser = await launch(executablePath);
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, locale: "en-GB", colorScheme: "light" });
  page.setDefaultTimeout(20_000);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith("data:")) complaints.push(`asked for ${request.url()}`);
  });
  const id = (name) => page.getByTestId(name);
  const starts = (name) => page.locator(`[data-testid^="${name}"]`);

  await page.goto(address);
  await starts("world-card-").first().waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("href")), "#main", "the skip link comes first");

  const world = starts("world-card-").first();
  await world.click();
  assert.equal(await world.getAttribute("aria-checked"), "true", "the world is chosen");
  assert.ok((await starts("plugin-toggle-").count()) >= 5, "the shipped packages are offered");
  await id("start-session").click();

  const story = id("story-message");
  const told = page.locator('[data-testid="story-message"]:not([data-role="user"]):not([aria-busy="true"])');
  await told.first().waitFor();
  const idle = () => page.waitForFunction(() => document.querySelector('[data-testid="send"]') !== null);
  await idle();
  const opening = await told.count();

  // Every length the newest passage ever had, as the reader saw it grow.
  await page.evaluate(() => {
    window.lengths = [];
    new MutationObserver(() => {
      const streaming = document.querySelector('[data-testid="story-message"][aria-busy="true"]');
      if (streaming) window.lengths.push(streaming.textContent.length);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await id("composer").fill("I walk to the water and listen.");
  await id("composer").press("Enter");
  await page.locator('[data-testid="story-message"][data-role="user"]').last().waitFor();
  await page.waitForFunction((before) => {
    const done = document.querySelectorAll('[data-testid="story-message"]:not([data-role="user"]):not([aria-busy="true"])');
    return done.length > before;
  }, opening);
  await idle();
  const lengths = [...new Set(await page.evaluate(() => window.lengths))];
  assert.ok(lengths.length > 5, `the text came in pieces, not at once: ${lengths.length} lengths`);
  assert.ok(lengths.every((length, place) => place === 0 || length > lengths[place - 1]), "and it only grew");
  assert.match(await story.nth((await story.count()) - 2).innerText(), /I walk to the water and listen\./);
  assert.ok((await told.last().innerText()).length > 200, "and it is a story");

  await starts("timeline-bar").first().waitFor();
  assert.ok((await starts("timeline-bar").count()) >= 3, "the timeline has a bar for each runtime");
  assert.ok((await starts("panel-").count()) >= 1, "a package shows its panel");

  const scheme = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await scheme();
  await id("theme-toggle").click();
  assert.notEqual(await scheme(), light, "the dark scheme is another one");
  await id("theme-toggle").click();
  await id("language-toggle").click();
  await page.getByText("故事").first().waitFor();
  await id("language-toggle").click();

  // What was played is there again after a reload.
  const before = await told.last().innerText();
  await page.reload();
  // Names of packages come with an answer of their own, a moment after the messages.
  await page
    .waitForFunction((text) => [...document.querySelectorAll('[data-testid="story-message"]')].at(-1)?.innerText === text, before)
    .catch(async () => assert.equal(await told.last().innerText(), before));

  await page.screenshot({ path: picture });
  assert.deepEqual(complaints, [], "the page has no complaint");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
