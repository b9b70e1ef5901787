import { expect, test } from "vitest";
import { SECOND_MS } from "../../src/base/duration.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { accessibilityViolations } from "./harness/accessibility.ts";
import { OUTAGE, pendingApproval, startWithApproval } from "./harness/approval-daemon.ts";
import { LargeFleet } from "./harness/large-fleet.ts";
import { openDaemon, openPage, useBrowser } from "./harness/page-visit.ts";
import { quietStatus } from "./harness/quiet-daemon.ts";

useBrowser();

const MONTH = { started_at: "2026-11-01T00:00:00.000Z", ends_at: "2026-12-01T00:00:00.000Z" };

test("the page has no accessibility violations in light, dark and phone layout", async () => {
  const { setup, daemon, page } = await startWithApproval();
  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, OUTAGE);
  await pendingApproval(daemon, node!);
  await page.locator("#attention a").click();
  await page.locator("#panel .guards").waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityViolations(page)).toEqual([]);
  }
  await page.locator("#pause button").click();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "Close the panel" }).click();
  expect(await accessibilityViolations(page)).toEqual([]);
  const width = await page.evaluate<number>("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(390);
});

test("the page has no accessibility violations while charts and budget can't be read", async () => {
  const unreadable = () => {
    throw new Error("not read");
  };
  const { page } = await openDaemon({ history: unreadable, budget: unreadable });
  await page.locator("#connection").getByText("incomplete").waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
});

test("in forced colors mode gauges have a track and ticks, and the values of a chart the colors of its lines", async () => {
  const { page } = await openDaemon({
    budget: () => ({ ...(quietStatus().budget() as object), month: { ...MONTH, calls: 10, calls_limit: 100 } }),
  });
  const colors = () =>
    page.evaluate<string[]>(`[
      ...[".bar", ".bar-tick"].map((part) => getComputedStyle(document.querySelector("#budget " + part)).backgroundColor),
      ...[...document.querySelectorAll("figure:last-child .now span")].map((value) => getComputedStyle(value).color),
    ]`);
  await page.locator("#charts .now span").last().waitFor();
  const before = await colors();
  expect(before).toHaveLength(4);
  await page.emulateMedia({ forcedColors: "active" });
  expect(await colors()).toEqual(before);
  // The colors fit the background, which is that of the system whatever theme was chosen.
  await page.emulateMedia({ forcedColors: "active", colorScheme: "dark" });
  const dark = await colors();
  expect(dark).not.toEqual(before);
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
  expect(await colors()).toEqual(dark);
});

test("a screen reader announces the summary only when it changes", async () => {
  const fleet = new LargeFleet(3);
  const web = await startTestServer(fleet.webDeps(), systemClock);
  const { page } = await openPage("about:blank");
  await page.clock.install();
  await page.goto(web.url);
  const announcement = page.locator("#announcement");
  await announcement.getByText("3 of 3 nodes online, 0 need attention").waitFor();
  await page.evaluate(`
    globalThis.announced = 0;
    new MutationObserver(() => { announced++; }).observe(document.querySelector("#announcement"), { childList: true });
  `);
  for (let round = 0; round < 3; round++) {
    const response = page.waitForResponse("**/api/v1/status");
    await page.clock.fastForward(20 * SECOND_MS);
    await response;
  }
  fleet.set({ 1: "offline" });
  await waitUntil("the change is announced", async () => {
    await page.clock.fastForward(20 * SECOND_MS);
    return (await announcement.textContent()) === "2 of 3 nodes online, 1 needs attention";
  });
  expect(await page.evaluate<number>("announced")).toBe(1);
});

test("a screen reader announces how many nodes pass the filter when it changes, but not when the fleet does", async () => {
  const fleet = new LargeFleet(500);
  const web = await startTestServer(fleet.webDeps(), systemClock);
  const { page } = await openPage(web.url);
  const announcement = page.locator("#filter-announcement");
  await page.locator("#search").fill("node_4");
  await announcement.getByText("111 of 500 nodes").waitFor({ state: "attached" });
  await page.locator("#search").fill("node_4 eu-west");
  await announcement.getByText("15 of 500 nodes").waitFor({ state: "attached" });
  await page.locator('#legend [data-k="online"]').click();
  const counts = page.locator("#filter span");
  const before = await announcement.textContent();
  expect(await counts.textContent()).toBe(before);
  fleet.set({ 40: "offline" });
  await waitUntil("the count is smaller", async () => (await counts.textContent()) !== before);
  expect(await announcement.textContent()).toBe(before);
  expect(await page.locator("#filter").getAttribute("role")).toBeNull();
  await page.getByRole("button", { name: "Clear filter" }).click();
  await waitUntil("nothing is announced", async () => (await announcement.textContent()) === "");
});
