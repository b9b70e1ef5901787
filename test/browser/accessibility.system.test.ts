import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessibilityViolations } from "./accessibility.ts";
import { OUTAGE, pendingApproval, startWithApproval } from "./approval-daemon.ts";
import { startBrowser } from "./chromium.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

test("the page has no accessibility violations in light, dark and phone layout", async () => {
  const { setup, daemon, page } = await startWithApproval(browser);
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
  await page.getByRole("button", { name: "Close the explanation" }).click();
  expect(await accessibilityViolations(page)).toEqual([]);
  const width = await page.evaluate<number>("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(390);
});
