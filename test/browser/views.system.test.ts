import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UIDS } from "../../grafana/dashboard.ts";
import type { Decision } from "../../src/model/remediation/decision.ts";
import type { JournalQuery } from "../../src/model/remediation/journal.ts";
import { createSystemClock } from "../../src/platform/clock.ts";
import type { WebDeps } from "../../src/web/api/routes.ts";
import { waitUntil } from "../integration/wait-until.ts";
import {
  heldDecision,
  idleRemediation,
  idleStatus,
  SAMPLES_START_MS,
  verifiedAction,
} from "../web/api/remediation-view-fixture.ts";
import { buildFleet } from "../web/fleet-fixture.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { startBrowser } from "./chromium.ts";
import { LargeFleet } from "./large-fleet.ts";
import { openPage } from "./page-visit.ts";
import { COLLECTOR_OFF } from "./quiet-daemon.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** Opens the page of a daemon with 500 nodes. */
async function open(deps: Partial<WebDeps> = {}, address = "/") {
  const fleet = new LargeFleet(500);
  const web = await startTestServer({ ...fleet.webDeps(), ...deps }, createSystemClock());
  const visit = await openPage(browser, web.url + address, { timezoneId: "UTC" });
  await visit.page.locator("#marks b").first().waitFor();
  return { fleet, web, ...visit };
}

const addressOf = (page: Page) => new URL(page.url()).hash;
const filterText = (page: Page) => page.locator("#filter span").textContent();
const namesListed = (page: Page) => page.locator("#attention .column-name").allTextContents();

/** The counts of the states of remediation by their label. */
const stateCounts = async (page: Page) => {
  const buttons = await page.locator("#marks button").allTextContents();
  return Object.fromEntries(buttons.map((text) => [text.replace(/\d+$/, ""), Number(/\d+$/.exec(text))]));
};

test("nodes that are treated, wait or are held have their own counts, colors and filters", async () => {
  const { page } = await open();
  expect(await stateCounts(page)).toEqual({
    "being treated": 2,
    "waiting (in flight)": 1,
    "waiting (canary)": 1,
    held: 2,
    "waiting for approval": 1,
    "given up": 1,
    "dry run": 1,
  });
  const colors = await page.evaluate<string[]>(
    `[...document.querySelectorAll("#marks .ring")].map((ring) => getComputedStyle(ring).color)`,
  );
  expect(new Set(colors).size).toBe(colors.length);
  await page.getByRole("link", { name: /^Waiting \(canary\) *1/ }).click();
  expect(addressOf(page)).toBe("#?remediation=canary");
  expect(await filterText(page)).toBe("1 of 500 nodes");
  expect(await namesListed(page)).toEqual(["name of node_307"]);
  // The selected node has a ring of another shape than a held one, which surrounds its cell.
  await page.getByRole("button", { name: "held" }).click();
  await page.locator("#attention a").first().click();
  await page.locator("#selected").waitFor();
  const shape = await page.evaluate<string>(`getComputedStyle(document.querySelector("#selected")).borderRadius`);
  expect(shape).toBe("50%");
});

test("each region has its name and its number of online nodes", async () => {
  const regions = Array.from({ length: 250 }, (_, index) => `region-${index}`);
  const { page } = await open({
    fleet: () => buildFleet(regions.map((region) => ({ id: `node of ${region}`, region }))),
  });
  expect(await page.locator("#labels .region").allTextContents()).toEqual(regions.map((region) => `${region}1/1`));
});

test("filter, selection and order are in the address, and survive a reload and the back button", async () => {
  const { page } = await open();
  await page.locator("#legend").getByRole("button", { name: "offline" }).click();
  await page.keyboard.press("/");
  await page.keyboard.type("ap-south");
  await page.locator("#attention-head").getByRole("button", { name: "Id" }).click();
  const [first] = await namesListed(page);
  await page.locator("#attention a").first().click();
  await page.locator("#panel").waitFor();
  const address = addressOf(page);
  expect(address).toMatch(/^#node\/node_\d+\?status=offline&q=ap-south&attention_sort=id$/);
  await page.reload();
  await page.locator("#attention a").first().waitFor();
  expect(await namesListed(page)).toContain(first);
  expect(await page.locator("#search").inputValue()).toBe("ap-south");
  expect(await page.locator("#panel").isVisible()).toBe(true);
  expect(addressOf(page)).toBe(address);
  await page.goBack();
  await page.locator("#panel").waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Clear filter" }).click();
  expect(addressOf(page)).toBe("#?attention_sort=id");
  // A link to a section, or to a node alone, leaves the filter as it is.
  await page.getByRole("link", { name: /^Calls this month/ }).click();
  await waitUntil("the filter is in the address again", () => addressOf(page) === "#?attention_sort=id");
});

test("the list of nodes that need attention is complete over its pages, and sortable", async () => {
  const { page } = await open();
  const count = await page.locator("#attention-count").textContent();
  const pages = Number(/of (\d+)/.exec((await page.locator("#attention-pager").textContent()) ?? "")?.[1]);
  await page.locator("#attention-head").getByRole("button", { name: "Node" }).click();
  const names = new Set<string>();
  for (let at = 1; at <= pages; at++) {
    await page.locator("#attention-pager").getByText(`Page ${at} of ${pages}`).waitFor();
    for (const name of await namesListed(page)) names.add(name);
    if (at < pages) await page.getByRole("button", { name: "Next" }).click();
  }
  expect(`${names.size} nodes`).toBe(count);
  const collator = new Intl.Collator("en", { numeric: true });
  expect([...names]).toEqual([...names].toSorted(collator.compare));
  await page.locator("#attention-head").getByRole("button", { name: "Node" }).click();
  await page.locator("#attention-pager").getByText(`Page 1 of ${pages}`).waitFor();
  expect((await namesListed(page))[0]).toBe([...names].at(-1));
});

test("the keyboard opens commands, finds nodes and moves the focus to the search", async () => {
  const { page, pageErrors } = await open();
  await page.keyboard.press("Meta+k");
  await page.locator("#palette-input").fill("node_499");
  await page.keyboard.press("Enter");
  await page.locator("#panel-title").getByText("node_499").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("table");
  await page.keyboard.press("Enter");
  await page.locator("#node-table-rows a").first().waitFor();
  // Without operators, commands are listed but can't be sent.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("pause");
  expect(await page.locator("#palette-list [aria-disabled]").textContent()).toContain("Read-only");
  await page.keyboard.press("Enter");
  expect(await page.locator("#dialog").isVisible()).toBe(false);
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  expect(await page.evaluate<string>("document.activeElement.id")).toBe("search");
  // A slash in a search is a character.
  await page.keyboard.type("a/b");
  expect(await page.locator("#search").inputValue()).toBe("a/b");
  expect(pageErrors.filter((error) => !error.includes("404"))).toEqual([]);
});

/** Decisions to hold nodes for `reason`, a second apart, oldest first. */
const holds = (nodes: number, reason: "storm" | "window", afterSeconds: number): readonly Decision[] =>
  Array.from({ length: nodes }, (_, index) => ({
    ...heldDecision,
    ...{ node: `node_${index}`, policy: "offline", at: SAMPLES_START_MS + 1_000 * (afterSeconds + index) },
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
  const { page } = await open({
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

test("banners name the operator, and link the section of the runbook and Grafana", async () => {
  const status = {
    ...(new LargeFleet(1).webDeps().status() as object),
    leader: { is_this: true, name: "warden-1", url: null },
    config_rejected_at: "2026-11-21T03:06:00.000Z",
    links: { runbook: "https://docs.example.net/runbook", grafana: "https://grafana.example.net" },
    collectors: {
      nodes: {
        ...COLLECTOR_OFF,
        last_success_at: "2026-11-21T03:05:00.000Z",
        failure: { reason: "unreachable", message: "connect ECONNREFUSED" },
      },
    },
  };
  const { page } = await open({
    status: () => status,
    remediation: () => ({
      ...idleRemediation,
      status: () => ({
        ...idleStatus,
        paused: { at: SAMPLES_START_MS, reason: "a deploy", operator: "alice" },
        breaker: { openedAt: SAMPLES_START_MS, nodes: 12 },
        trust: [{ reason: "inventory_shrunk", detail: "300 of 500 nodes" }],
        stormUntil: SAMPLES_START_MS,
        journal: "the journal can't be written: disk full",
      }),
    }),
  });
  await page.locator(".banner").getByText("03:00:00 by alice: a deploy").waitFor();
  await page.locator(".banner").getByText("connect ECONNREFUSED. Node data is from 03:05:00.").waitFor();
  await page.locator(".banner").getByText("The new configuration was rejected").waitFor();
  const links = () =>
    page.locator(".banner a").evaluateAll((found) => found.map((link) => String(link.getAttribute("href"))));
  const sections = [...readFileSync("docs/runbook.md", "utf8").matchAll(/^### (\w+)$/gm)].map(([, name]) => name!);
  const runbook = (await links()).flatMap((link) => link.split("https://docs.example.net/runbook#")[1] ?? []);
  expect(runbook).toHaveLength(7);
  expect(sections.map((name) => name.toLowerCase())).toEqual(expect.arrayContaining(runbook));
  expect(runbook.slice(0, 3)).toEqual(["proxywardenblind", "proxywardenpaused", "proxywardenbreakeropen"]);
  expect((await links()).filter((link) => link === `https://grafana.example.net/d/${UIDS.warden}`)).toHaveLength(7);
  Object.assign(status.leader, { is_this: false });
  await page.locator(".banner").getByText("The leader is warden-1.").waitFor();
  expect((await links())[0]).toBe("https://docs.example.net/runbook#proxywardennoleader");
  // A leader whose lease has ended is shown like a standby.
  expect(await page.locator(".banner b").last().textContent()).toBe("The journal can't be reached");
});

test("limits, ages and charts say what their numbers mean", async () => {
  const category = {
    configured: { requests: 100, burst: 200, window_seconds: 60 },
    stated: null,
    remaining_at_least: 179,
    consecutive_refusals: 0,
    next_poll: { in_seconds: 0, held_by: null },
  };
  const planned = { interval_seconds: 900, fresh_seconds: 2_700, stretch: 1, bound_by: null };
  const details = { planned, age_seconds: { median: 20, max: 34 }, nodes_read: 12, failure: null };
  const base = new LargeFleet(1).webDeps();
  const at = Array.from({ length: 60 }, (_, index) => 1_800_000_000 + 10 * index);
  const flat = (value: number) => at.map(() => value);
  const { page } = await open({
    status: () => ({
      ...(base.status() as object),
      nodes: { total: 1_000 },
      collectors: { details, nodes: COLLECTOR_OFF },
    }),
    budget: () => ({ ...(base.budget() as object), categories: { node_management: category } }),
    history: () => ({
      step_seconds: 10,
      at,
      series: {
        ...{ nodes: flat(1_000), online: flat(993), active_sessions: flat(4_321), month_calls: flat(1) },
        ...{ node_management_left: flat(179), session_monitoring_left: flat(900) },
      },
    }),
  });
  expect(await page.locator("#budget .gauge").first().textContent()).toContain("179 leftof 100 a minute, burst 200");
  const fresh = page.locator("#fresh .gauge").first();
  expect(await fresh.locator(".gauge-value").textContent()).toBe("34s");
  expect(await fresh.locator(".gauge-note").textContent()).toContain("12 of 1,000 read");
  const chart = page.locator("#charts figure").first();
  await chart.scrollIntoViewIfNeeded();
  const box = (await chart.locator(".u-over").boundingBox())!;
  await page.mouse.move(box.x + box.width - 5, box.y + 20);
  await chart.locator(".tip").getByText("· not online 7").waitFor();
  // No sample is near: the daemon is younger than the hour that the axis shows.
  await page.mouse.move(box.x + 5, box.y + 20);
  await chart.locator(".tip").waitFor({ state: "hidden" });
});
