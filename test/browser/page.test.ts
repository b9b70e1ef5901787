import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nodesOf } from "../../src/simulator/inspection.ts";
import { type Clinic, type Doctor, rebootOffline, startClinic, startDoctor } from "../integration/remediation/healing-daemon.ts";
import { startWatching } from "../integration/simulated-network.ts";
import { until } from "../integration/wait-until.ts";
import { startBrowser } from "./chromium.ts";
import { visit } from "./page-visit.ts";

const OUTAGE = { ailment: "outage", cure: "reboot" } as const;
const TOKEN = "open-sesame";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** A clinic whose doctor asks a person before every action. */
async function startAsking() {
  const clinic = await startClinic();
  const prescription = clinic.prescribe([rebootOffline({ mode: "approve" })], {
    safety: { mode: "enforce", storm_cooldown: "0s", trust: { warmup_walks: 1 } },
  });
  const doctor = await startDoctor(clinic, prescription);
  await until("it is trusted", async () => (await doctor.look()).sum("proxywarden_trusted") === 1);
  return { clinic, doctor, ...(await visit(browser, doctor.app.url())) };
}

const nameOf = ({ network }: Clinic, node: string) =>
  network.service.world.fleet.nodes.find(({ id }) => id === node)!.name;

/** What the simulated service itself knows of its nodes. */
function truth({ network }: Pick<Clinic, "network">): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of nodesOf(network.service)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** What the legend says: nodes by status, those of which there are any. */
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
  until("the page shows the fleet as it is", async () => {
    const shown = JSON.stringify(Object.entries(await legend(page)).toSorted());
    return shown === JSON.stringify(Object.entries(wanted()).toSorted());
  });

const waiting = (doctor: Doctor, node: string) =>
  until(`an action of ${node} waits`, async () =>
    (await doctor.actions()).find((action) => action.node === node && action.state === "awaiting"),
  );

test("the page shows the fleet as it is; a node that falls ill turns in it; and the keyboard alone comes to why", async () => {
  const { clinic, doctor, page, complaints } = await startAsking();
  await untilShown(page, () => truth(clinic));
  await page.evaluate(() => Object.assign(globalThis, { isSamePage: true }));
  const [node] = clinic.nodes;
  clinic.people.fallIll(node!, OUTAGE);
  await untilShown(page, () => ({ online: clinic.nodes.length - 1, offline: 1 }));
  expect(await page.evaluate(() => "isSamePage" in globalThis)).toBe(true);
  expect(await page.locator("#trouble a").allTextContents()).toEqual([nameOf(clinic, node!)]);
  await waiting(doctor, node!);

  const focus = () => page.evaluate<string>(`document.activeElement?.id ?? ""`);
  for (let press = 0; press < 40 && (await focus()) !== "cells"; press++) await page.keyboard.press("Tab");
  expect(await focus()).toBe("cells");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("t");
  const active = page.locator(`#${await page.locator("#cells").getAttribute("aria-activedescendant")}`);
  expect(await active.textContent()).toMatch(new RegExp(`^${nameOf(clinic, node!)}, offline, `));
  await page.keyboard.press("Enter");
  await page.locator("#panel .guards").getByText("approval", { exact: true }).waitFor();
  expect(await focus()).toBe("panel-title");
  expect(await page.locator("#panel").innerText()).toContain("node.status");
  expect(page.url()).toContain(`#node/${node}`);
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect(await focus()).toBe("cells");
  expect(complaints).toEqual([]);
});

test("orders want the token: none and a wrong one are refused, the right one pauses, approves and is kept for the tab alone", async () => {
  const { clinic, doctor, page, complaints } = await startAsking();
  const paused = async () => (await doctor.look()).sum("proxywarden_paused") === 1;
  await page.locator("#pause:enabled").click();
  await page.getByLabel("Reason").fill("a deploy");
  await page.locator("dialog .primary").click();
  await page.getByText("Orders need an operator's token.").waitFor();
  await page.getByLabel("Operator token").fill("guessed");
  await page.locator("dialog .primary").click();
  await page.getByText("Refused: that is no operator's token.").waitFor();
  expect(await paused()).toBe(false);
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page.locator("#banners").getByText("a deploy").waitFor();
  expect(await paused()).toBe(true);
  // The token is kept: nothing is asked for but leave.
  await page.locator("#banners button").click();
  await page.locator("dialog .primary").click();
  await until("it is resumed", async () => !(await paused()));

  const [node] = clinic.nodes;
  clinic.people.fallIll(node!, OUTAGE);
  await waiting(doctor, node!);
  expect(clinic.gate.posts).toEqual([]);
  await page.locator("#approvals").getByRole("button", { name: "Approve" }).click();
  await page.locator("dialog .primary").click();
  await page.locator("#activity").getByText("verified").waitFor();
  expect(clinic.gate.posts.map(({ path }) => path)).toEqual([`/v1/nodes/${node}/reboot`]);
  const kept = await page.evaluate<string[]>(
    "[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]",
  );
  expect(kept.map((store) => store.includes(TOKEN))).toEqual([true, false, false]);
  await page.locator("#forget").click();
  expect(await page.evaluate<string>("JSON.stringify(sessionStorage)")).not.toContain(TOKEN);
  expect(complaints).toEqual([]);
});

test("without operators the page is read-only, and says so", async () => {
  const { network, daemon } = await startWatching({ scenario: { nodes: 20, sessions: 10 } });
  const { page, complaints } = await visit(browser, daemon.app.url());
  await untilShown(page, () => truth({ network }));
  await page.getByText("Read-only: this daemon takes no orders").waitFor();
  expect(await page.locator("#pause").isDisabled()).toBe(true);
  expect(complaints).toEqual([]);
});

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds that is serious, or worse: rule, and where. */
async function barriers(page: Page): Promise<readonly string[]> {
  // The page's own policy lets nothing in; the debugger's own evaluation is not bound by it.
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
    interface Violation {
      readonly id: string;
      readonly impact: string;
      readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
    }
    const { violations } = await axe.run();
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
      );
  });
}

test("nothing bars anybody: in light and dark, on a phone, with a node explained and an order asked", async () => {
  const { clinic, doctor, page } = await startAsking();
  const [node] = clinic.nodes;
  clinic.people.fallIll(node!, OUTAGE);
  await waiting(doctor, node!);
  await page.locator("#trouble a").click();
  await page.locator("#panel .guards").waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await barriers(page)).toEqual([]);
  }
  await page.locator("#pause").click();
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Close the explanation" }).click();
  expect(await barriers(page)).toEqual([]);
  const width = await page.evaluate<number>("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(390);
});
