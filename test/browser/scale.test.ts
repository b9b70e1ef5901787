import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NodeStatus } from "../../src/model/node.ts";
import { createSystemClock } from "../../src/platform/clock.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { buildFleet, withStatus } from "../web/fleet-fixture.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { startBrowser } from "./chromium.ts";
import { openPage } from "./page-visit.ts";
import { quietStatus } from "./quiet-daemon.ts";

const NODES = 10_000;
/** The number of elements does not depend on the fleet: cells are painted, lists are short. */
const ELEMENTS_MAX = 1_500;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

const paints = async (page: Page) => Number(await page.locator("#canvas").getAttribute("data-paints"));
const elements = (page: Page) => page.evaluate<number>("document.querySelectorAll('*').length");

/** Runs work in the page and returns the next frames: how many there were, and how many painted anything. */
const framesOf = (page: Page, work: string) =>
  page.evaluate<{ frames: number; paints: number }>(`(async () => {
    const canvas = document.querySelector("#canvas");
    const before = Number(canvas.dataset.paints);
    ${work};
    let frames = 0;
    for (; frames < 20; frames++) await new Promise(requestAnimationFrame);
    return { frames, paints: Number(canvas.dataset.paints) - before };
  })()`);

test("ten thousand nodes need few elements and at most one paint per frame", async () => {
  const regions = ["eu-west", "eu-central", "us-east", "us-west", "ap-south"];
  const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `node_${index}`, region: regions[index % 5]! }));
  const now = { fleet: buildFleet(nodes) };
  const web = await startTestServer({ fleet: () => now.fleet, ...quietStatus() }, createSystemClock());
  const { page, pageErrors } = await openPage(browser, web.url);
  const online = page.locator("#legend b").first();
  await waitUntil("all nodes are shown", async () => (await online.textContent()) === "10,000");
  const [elementCount, paintCount] = [await elements(page), await paints(page)];
  expect(elementCount).toBeLessThan(ELEMENTS_MAX);

  const offline: Record<number, NodeStatus> = {};
  for (let slot = 0; slot < 1_500; slot++) offline[slot * 6] = "offline";
  const fleets: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/fleet")) fleets.push(request.url());
  });
  now.fleet = withStatus(now.fleet, offline);
  await waitUntil("the offline nodes are shown", async () => (await online.textContent()) === "8,500");
  expect(await paints(page)).toBeLessThanOrEqual(paintCount + 2);
  expect(fleets).toEqual([]);
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);

  // Many key presses and searches lead to at most one paint per frame.
  const typing = `for (const text of ["n", "no", "node", "node_9", "node_99", ""]) {
    const input = document.querySelector("#search");
    input.value = text;
    input.dispatchEvent(new Event("input"));
  }`;
  expect((await framesOf(page, typing)).paints).toBe(1);
  const moving = `const cells = document.querySelector("#cells");
    cells.focus();
    for (let press = 0; press < 500; press++) {
      cells.dispatchEvent(new KeyboardEvent("keydown", { key: press % 2 ? "ArrowDown" : "ArrowRight" }));
    }`;
  expect((await framesOf(page, moving)).paints).toBe(0);
  expect(pageErrors).toEqual([]);
});
