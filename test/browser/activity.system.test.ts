import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { Decision } from "../../src/model/remediation/episode.ts";
import type { JournalQuery } from "../../src/model/remediation/journal.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { waitUntil } from "../integration/wait-until.ts";
import {
  heldDecision,
  idleRemediation,
  idleStatus,
  SAMPLES_START_MS,
  verifiedAction,
} from "../web/api/remediation-view-fixture.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { openDaemon, openPage, useBrowser } from "./harness/page-visit.ts";
import { quietStatus } from "./harness/quiet-daemon.ts";

useBrowser();

/** Decisions to hold nodes for `reason`, a second apart, oldest first. */
const holds = (nodes: number, reason: "storm" | "window", afterSeconds: number): readonly Decision[] =>
  Array.from({ length: nodes }, (_, index) => ({
    ...heldDecision,
    node: `node_${index}`,
    policy: "offline",
    at: SAMPLES_START_MS + 1_000 * (afterSeconds + index),
    blockers: [{ reason, detail: `the detail of node_${index}` }],
  }));

/** Answers a query of rows as the journal does: newest first. */
const answer = <Row>(rows: readonly Row[], at: (row: Row) => number, { until, limit }: JournalQuery) =>
  rows
    .filter((row) => at(row) <= (until ?? Number.POSITIVE_INFINITY))
    .toSorted((one, other) => at(other) - at(one))
    .slice(0, limit);

test("the activity tells policy from status, groups equal holds, expands its rows and loads older ones", async () => {
  // Alternating reasons of two nodes don't form an incident.
  const single = Array.from({ length: 450 }, (_, index): Decision => {
    const [row] = holds(1, index % 2 ? "storm" : "window", 0);
    return { ...row!, node: `node_${index % 2}`, at: SAMPLES_START_MS + 60_000 * index };
  });
  const incident = holds(12, "storm", 60 * 500);
  const actions = [{ ...verifiedAction, node: "node_3", policy: "offline", answered: { operator: "alice", at: 0 } }];
  const queries: JournalQuery[] = [];
  const { page } = await openDaemon({
    remediation: () => ({
      ...idleRemediation,
      decisions: async (query) => {
        queries.push(query);
        return answer([...single, ...incident], ({ at }) => at, query);
      },
      actions: async (query) => answer(actions, ({ createdAt }) => createdAt, query),
    }),
  });
  const lines = page.locator("#activity > li");
  await lines.nth(1).waitFor();
  expect(await lines.first().innerText()).toMatch(/hold\s+12 nodes since .*\s+▸\s+policy offline\s+storm/);
  await lines.first().getByRole("button", { name: "Details" }).click();
  await lines.first().locator(".incident-nodes a").nth(11).waitFor();
  expect(await lines.first().locator(".incident-nodes a").count()).toBe(12);
  await lines.nth(1).getByRole("button", { name: "Details" }).click();
  await lines.nth(1).locator(".guards").getByText("the detail of node_0").waitFor();
  expect(await lines.nth(1).locator(".fields").innerText()).toContain("node.status");
  // An incident, and each other decision.
  await waitUntil("all older rows are loaded", async () => {
    const older = page.locator("#activity-older:enabled");
    if (await older.isVisible()) await older.click();
    return (await lines.count()) === 1 + single.length + actions.length;
  });
  await page.locator("#activity-older").waitFor({ state: "hidden" });
  expect(queries.length).toBeGreaterThan(2);
  await page.locator("#activity-filter").getByRole("button", { name: "actions" }).click();
  await waitUntil("only actions are shown", async () => (await lines.count()) === 1);
  expect(await lines.first().innerText()).toContain("approved by alice");
});

test("times in texts of the daemon are shown in the local time zone", async () => {
  const decision = {
    ...heldDecision,
    blockers: [{ reason: "breaker", detail: "it opened at 2026-11-21 03:10:00 UTC" }],
  };
  const stormCause = "101 of 500 nodes were unhealthy at 2026-11-21 03:05:00 UTC";
  const remediation = {
    ...idleRemediation,
    decisions: async () => [decision],
    status: () => ({ ...idleStatus, stormUntil: SAMPLES_START_MS + 20 * MINUTE_MS, stormCause }),
  };
  const web = await startTestServer({ remediation: () => remediation, ...quietStatus() }, systemClock);
  const { page } = await openPage(web.url, { timezoneId: "Asia/Kolkata" });
  await page
    .locator(".banner")
    .getByText("until at least 08:50:00: 101 of 500 nodes were unhealthy at 08:35:00.")
    .waitFor();
  const line = page.locator("#activity > li");
  await line.getByText("it opened at 21 Nov 08:40:00").waitFor();
  await line.getByRole("button", { name: "Details" }).click();
  await line.locator(".guards").getByText("it opened at 21 Nov 08:40:00").waitFor();
  expect(await line.locator(".fields").innerText()).toMatch(/observed\s+21 Nov 08:30:00/);
});

test("activity that can't be read is not shown as none", async () => {
  const remediation = { ...idleRemediation, decisions: () => Promise.reject(new Error("connection refused")) };
  const web = await startTestServer({ remediation: () => remediation, ...quietStatus() }, systemClock);
  const { page } = await openPage(web.url);
  await page.locator("#not-shown").getByText("The page can't show: activity.").waitFor();
  expect(await page.locator("#activity").innerText()).toBe("Not read yet.");
  await page.locator("#activity-filter").getByRole("button", { name: "commands" }).click();
  await waitUntil("no command is shown", async () => (await page.locator("#activity").innerText()) === "Not read yet.");
});

test("lines of an earlier day show their date once the day has changed", async () => {
  const at = Date.UTC(2026, 10, 21, 23, 50);
  const remediation = { ...idleRemediation, decisions: async () => [{ ...heldDecision, at }] };
  const web = await startTestServer({ remediation: () => remediation, ...quietStatus() }, systemClock);
  const { page } = await openPage("about:blank", { timezoneId: "UTC" });
  await page.clock.install({ time: at + MINUTE_MS });
  await page.goto(web.url);
  const time = page.locator("#activity time");
  await time.getByText("23:50:00", { exact: true }).waitFor();
  await page.clock.fastForward(DAY_MS / 24);
  await time.getByText("21 Nov 23:50:00", { exact: true }).waitFor();
});
