import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { isLongRun } from "../harness/run-length.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { accessibilityViolations } from "./harness/accessibility.ts";
import { LargeFleet } from "./harness/large-fleet.ts";
import { openPage, useBrowser } from "./harness/page-visit.ts";

/** `npm run world` adds larger fleets. */
const SIZES = isLongRun ? [500, 10_000, 100_000] : [500];
/**
 * The number of elements does not depend on the fleet: cells are painted, lists are paged or show the visible rows.
 */
const ELEMENTS_MAX = 1_500;
/** The changes of a fleet arrive together, or in a few messages. */
const PAINTS_MAX = 10;
const PHONE = { width: 390, height: 844 };

useBrowser();

const paints = async (page: Page) => Number(await page.locator("#canvas").getAttribute("data-paints"));
const elements = (page: Page) => page.evaluate<number>("document.querySelectorAll('*').length");
const text = (count: number) => count.toLocaleString("en");

/** Opens the page of a fleet, and waits until it shows the fleet. */
async function openFleet(nodes: number, address = "/") {
  const fleet = new LargeFleet(nodes);
  const web = await startTestServer(fleet.webDeps(), systemClock);
  const visit = await openPage(web.url + address);
  const online = visit.page.locator("#legend b").first();
  await waitUntil("the fleet is shown", async () => (await online.textContent()) === text(fleet.online()));
  // Before, the page may read the fleet again, because it may have missed changes.
  await visit.page.locator("#connection").getByText("live").waitFor();
  return { fleet, online, ...visit };
}

/** Runs work in the page and returns how many of the next frames painted anything. */
const paintsAfter = (page: Page, work: string) =>
  page.evaluate<number>(`(async () => {
    const canvas = document.querySelector("#canvas");
    const before = Number(canvas.dataset.paints);
    ${work};
    for (let frames = 0; frames < 20; frames++) await new Promise(requestAnimationFrame);
    return Number(canvas.dataset.paints) - before;
  })()`);

test.each(SIZES)("%i nodes need few elements and at most one paint per frame", async (nodes) => {
  const { fleet, online, page, pageErrors } = await openFleet(nodes);
  const paintCount = await paints(page);
  expect(paintCount).toBe(1);
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);
  const fleets: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/fleet")) fleets.push(request.url());
  });
  fleet.change(Math.min(1_500, nodes / 5));
  await waitUntil("the changes are shown", async () => (await online.textContent()) === text(fleet.online()));
  expect(await paints(page)).toBeLessThanOrEqual(paintCount + PAINTS_MAX);
  // Right after connecting, the page may read the fleet once more.
  expect(fleets.length).toBeLessThanOrEqual(1);
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);

  // Many key presses and searches lead to at most one paint per frame.
  const typing = `for (const text of ["n", "no", "node", "node_9", "node_99", ""]) {
    const input = document.querySelector("#search");
    input.value = text;
    input.dispatchEvent(new Event("input"));
  }`;
  expect(await paintsAfter(page, typing)).toBe(1);
  const moving = `const cells = document.querySelector("#cells");
    cells.focus();
    for (let press = 0; press < 500; press++) {
      cells.dispatchEvent(new KeyboardEvent("keydown", { key: press % 2 ? "ArrowDown" : "ArrowRight" }));
    }`;
  expect(await paintsAfter(page, moving)).toBe(0);
  expect(pageErrors).toEqual([]);
});

test.each(SIZES)("the table of %i nodes has only the visible rows, in the chosen order", async (nodes) => {
  const { fleet, page, pageErrors } = await openFleet(nodes, "/#?view=table&sort=-id");
  const rows = page.locator("#node-table-rows tr:not(.spacer)");
  const last = nodes - 1;
  const ids = Array.from({ length: nodes }, (_, index) => `node_${index}`).sort(
    nodes > 20_000 ? undefined : new Intl.Collator("en", { numeric: true }).compare,
  );
  await rows.first().getByText(ids[last]!, { exact: true }).waitFor();
  expect(await page.locator("#node-table-count").getAttribute("aria-rowcount")).toBe(String(nodes + 1));
  // The last row can be reached, and every row on the way has its own place.
  for (const share of [0.3, 0.7, 1]) {
    await page.evaluate(`{
      const box = document.querySelector("#node-table");
      box.scrollTop = ${share} * box.scrollHeight;
    }`);
    await waitUntil("the visible rows are shown", () =>
      page.evaluate<boolean>(`{
        const box = document.querySelector("#node-table").getBoundingClientRect();
        const shown = [...document.querySelectorAll("#node-table-rows tr:not(.spacer)")];
        const edges = [shown[0].getBoundingClientRect().top, shown.at(-1).getBoundingClientRect().bottom];
        edges[0] <= box.top + 60 && edges[1] >= box.bottom - 2;
      }`),
    );
    const index = Number(await rows.first().getAttribute("aria-rowindex")) - 2;
    expect(await rows.first().locator(".column-id").textContent()).toBe(ids[last - index]);
  }
  await rows.last().getByText(ids[0]!, { exact: true }).waitFor();
  expect(await elements(page)).toBeLessThan(ELEMENTS_MAX);
  // Changes move rows while the table is open.
  await page.locator("#node-table-head").getByRole("button", { name: "Status" }).click();
  fleet.set({ [nodes - 1]: "unknown" });
  await page.locator("#node-table-head").getByRole("button", { name: "Status" }).click();
  await page.evaluate(`document.querySelector("#node-table").scrollTop = 0`);
  await rows.getByText("unknown", { exact: true }).first().waitFor();
  expect(pageErrors).toEqual([]);
});

test.each(SIZES)("the page of %i nodes has no accessibility violations, light, dark or on a phone", async (nodes) => {
  const { page } = await openFleet(nodes, "/#node/node_7?remediation=held");
  await page.locator("#panel-title").getByText("node_7").waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityViolations(page)).toEqual([]);
  }
  await page.goto(page.url().replace(/#.*/, "#?view=table&sort=status"));
  await page.locator("#node-table-rows a").first().waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.keyboard.press("Control+k");
  await page.locator("#palette-list [role=option]").first().waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.setViewportSize(PHONE);
  expect(await accessibilityViolations(page)).toEqual([]);
  expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(PHONE.width);
  await page.context().setOffline(true);
  await page.locator("#connection").getByText("disconnected").waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
});
