import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { actualNodes } from "../harness/simulator/actual-state.ts";
import type { HealingSetup } from "../integration/remediation/healing-daemon.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { nodeName, OUTAGE, pendingApproval, startWithApproval } from "./harness/approval-daemon.ts";
import { useBrowser } from "./harness/page-visit.ts";

useBrowser();

/** Counts the nodes of the simulated service by status. */
function actualStatusCounts({ network }: Pick<HealingSetup, "network">): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of actualNodes(network.service)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Returns the counts in the legend that are not 0, by status. */
const legend = (page: Page): Promise<Record<string, number>> =>
  page
    .locator("#legend button")
    .evaluateAll((buttons) =>
      Object.fromEntries(
        buttons
          .map(
            (button) =>
              [button.querySelector("span")!.textContent, Number(button.querySelector("b")!.textContent)] as const,
          )
          .filter(([, count]) => count > 0),
      ),
    );

const untilShown = (page: Page, wanted: () => Record<string, number>) =>
  waitUntil("the legend shows the expected counts", async () => {
    const shown = JSON.stringify(Object.entries(await legend(page)).toSorted());
    return shown === JSON.stringify(Object.entries(wanted()).toSorted());
  });

test("the page shows the fleet and an unhealthy node, and explains the node by keyboard", async () => {
  const { setup, daemon, page, pageErrors } = await startWithApproval();
  await untilShown(page, () => actualStatusCounts(setup));
  await page.evaluate(() => Object.assign(globalThis, { isSamePage: true }));
  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, OUTAGE);
  await untilShown(page, () => ({ online: setup.nodes.length - 1, offline: 1 }));
  expect(await page.evaluate(() => "isSamePage" in globalThis)).toBe(true);
  expect(await page.locator("#attention a").allTextContents()).toEqual([nodeName(setup, node!)]);
  await pendingApproval(daemon, node!);

  const focus = () => page.evaluate<string>(`document.activeElement?.id ?? ""`);
  for (let press = 0; press < 40 && (await focus()) !== "cells"; press++) await page.keyboard.press("Tab");
  expect(await focus()).toBe("cells");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("t");
  const active = page.locator(`#${await page.locator("#cells").getAttribute("aria-activedescendant")}`);
  expect(await active.textContent()).toMatch(new RegExp(`^${nodeName(setup, node!)}, offline, `));
  await page.keyboard.press("Enter");
  await page.locator("#panel .guards").getByText("approval", { exact: true }).waitFor();
  expect(await focus()).toBe("panel-title");
  expect(await page.locator("#panel").innerText()).toContain("node.status");
  expect(page.url()).toContain(`#node/${node}`);
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect(await focus()).toBe("cells");
  expect(pageErrors).toEqual([]);
});
