import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Decision } from "../../src/model/remediation/episode.ts";
import { NODE_MARKS } from "../../src/remediation/status/views.ts";
import {
  emptyHistory,
  heldDecision,
  idleRemediation,
  policyStatus,
  sampleApproval,
  sampleExplanation,
  sampleRemediation,
} from "../web/api/remediation-view-fixture.ts";
import { buildFleet, marksInSteps, stepsOf } from "../web/fleet-fixture.ts";
import { openDaemon, useBrowser } from "./harness/page-visit.ts";

useBrowser();

/** Returns the texts of the elements that are cut off. */
const cutTexts = (page: Page, selector: string) =>
  page
    .locator(selector)
    .evaluateAll((boxes) =>
      boxes
        .filter((box) => box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth)
        .map((box) => box.textContent),
    );

const LONG_DETAIL = "the detail of a reason for a hold, which is several lines long in the panel of a node. ".repeat(6);

test("the evidence of a request for approval and the texts of a history are not cut off", async () => {
  const fields = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`node.field_${index}`, 0.5]));
  const approval = { ...sampleApproval, evidence: { ...sampleApproval.evidence, fields } };
  const decision: Decision = { ...heldDecision, blockers: [{ reason: "window", detail: LONG_DETAIL }] };
  const { page } = await openDaemon(
    {
      remediation: () => ({
        ...sampleRemediation(),
        approvals: () => [approval],
        historyOf: async () => ({ ...emptyHistory, actions: [approval], decisions: [decision] }),
      }),
    },
    "/#node/node_1",
  );
  await page.locator("#panel .approval .detail").waitFor();
  await page.locator("#approvals .detail").waitFor();
  await page.locator("#panel .history .detail").waitFor();
  expect(await cutTexts(page, "#approvals .detail, #panel .detail")).toEqual([]);
});

test.each([1280, 1100])(
  "in a window of %i pixels, the lists of nodes cut off no status, state or region",
  async (width) => {
    const statuses = ["online", "offline", "quarantined", "rebooting", "maintenance", "unknown"] as const;
    const marks = new Map(NODE_MARKS.map((mark, index) => [`n${index}`, mark]));
    const nodes = NODE_MARKS.map((_, index) => ({
      id: `n${index}`,
      region: "ap-southeast",
      status: statuses[index % statuses.length]!,
    }));
    const { page } = await openDaemon({
      fleet: () => buildFleet(nodes),
      remediation: () => ({ ...idleRemediation, nodeMarks: (mark) => marksInSteps(marks, mark) }),
    });
    await page.setViewportSize({ width, height: 900 });
    await page.getByRole("button", { name: "table" }).click();
    await page.locator("#node-table-rows .ring-key").first().waitFor();
    const columns = ".column-status, .column-remediation, .column-region";
    expect(await cutTexts(page, `#attention :is(${columns}), #node-table-rows :is(${columns})`)).toEqual([]);
  },
);

test("a policy that fell back says why, and what ends it", async () => {
  const policy = { ...policyStatus, mode: "dry_run", hasFallenBack: true } as const;
  const { page } = await openDaemon({ remediation: () => ({ ...idleRemediation, policies: () => stepsOf([policy]) }) });
  await page.locator("#policies summary").click();
  const mode = page.locator(".policy-spec div").filter({ hasText: "in force" });
  expect(await mode.innerText()).toMatch(
    /healed too few nodes .* until its text changes or an operator resets the breaker/,
  );
});

test("the buttons that expand lines of the activity have different names for screen readers", async () => {
  const { page } = await openDaemon({ remediation: () => sampleRemediation() });
  await page.locator("#activity .expand").first().waitFor();
  const names = await page.locator("#activity .expand").evaluateAll((all) => all.map((each) => each.ariaLabel));
  expect(new Set(names).size).toBe(names.length);
});

test("a node that the page can't show is not shown as loading", async () => {
  const { page } = await openDaemon({ remediation: () => sampleRemediation() });
  await page.route("**/api/v1/nodes/*", (route) => route.fulfill({ json: { id: "node_1" } }));
  await page.evaluate(`location.hash = "#node/node_1"`);
  await page
    .locator("#panel-problem")
    .getByText("the page can't show the response; if the daemon was upgraded, reload the page")
    .waitFor();
  expect(await page.locator("#panel-body").innerText()).not.toContain("loading");
});

test("a node that is opened from the end of a long list of approvals is shown, and the list stays at its end", async () => {
  const approvals = Array.from({ length: 30 }, (_, index) => ({ ...sampleApproval, id: `act-${index}` }));
  const { page } = await openDaemon({ remediation: () => ({ ...sampleRemediation(), approvals: () => approvals }) });
  await page.locator("#approvals a").last().click();
  await page.locator("#panel-body .panel-id").waitFor();
  const { y } = (await page.locator("#panel-title").boundingBox())!;
  expect(y).toBeGreaterThan(0);
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect((await page.locator("#approvals a:focus").boundingBox())!.y).toBeLessThan(1_000);
});

test("after another node was opened from the end of the list, closing the panel shows where it was opened", async () => {
  const approvals = Array.from({ length: 30 }, (_, index) => ({
    ...sampleApproval,
    id: `act-${index}`,
    node: `node_${index}`,
  }));
  const { page } = await openDaemon({ remediation: () => ({ ...sampleRemediation(), approvals: () => approvals }) });
  const links = page.locator("#approvals a");
  await links.first().click();
  await page.locator("#panel-title").getByText("node_0").waitFor();
  await links.last().click();
  await page.locator("#panel-title").getByText("node_29").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect((await page.locator("#approvals li:last-child a:focus").boundingBox())!.y).toBeLessThan(1_000);
});

test("a field whose last value is stale is shown once", async () => {
  const { policies, ...rest } = sampleExplanation("node_1");
  const fields = { "node.status": "online", "node.cpu_usage": 0.975 };
  const unknowns = [
    { field: "node.cpu_usage", why: "stale" },
    { field: "node.disk_usage", why: "missing" },
  ];
  const explanation = { ...rest, policies: [{ ...policies[0]!, verdict: "unknown", fields, unknowns } as const] };
  const { page } = await openDaemon(
    { remediation: () => ({ ...sampleRemediation(), explain: () => stepsOf(explanation) }) },
    "/#node/node_1",
  );
  await page.locator("#panel .fields div").first().waitFor();
  expect((await page.locator("#panel .fields div").allInnerTexts()).map((text) => text.replace("\n", " "))).toEqual([
    "node.status online",
    "node.cpu_usage 0.975, stale",
    "node.disk_usage missing",
  ]);
});

test("the count of filtered nodes names the filter", async () => {
  const { page } = await openDaemon();
  const filter = page.locator("#filter span");
  await page.getByRole("link", { name: /^Needs attention/ }).click();
  await filter.getByText(/^\d+ of 500 nodes: needs attention$/).waitFor();
  await page.locator('#legend [data-k="offline"]').click();
  await filter.getByText(/^\d of 500 nodes: offline, needs attention$/).waitFor();
  await page.getByRole("link", { name: /^Held/ }).click();
  await filter.getByText(/^\d of 500 nodes: held$/).waitFor();
});

test("the id of a node that a policy read stays an id", async () => {
  const read = { ...heldDecision.evidence, fields: { "node.id": "node_1" } };
  const decision: Decision = { ...heldDecision, verdict: "act", blockers: [], evidence: read };
  const { page } = await openDaemon(
    {
      node: (id) => ({ id, name: `name of ${id}` }),
      remediation: () => ({
        ...sampleRemediation(),
        actions: async () => [],
        decisions: async () => [decision],
        historyOf: async () => ({ ...emptyHistory, decisions: [decision] }),
      }),
    },
    "/#node/node_1",
  );
  await page.locator("#activity a").getByText("name of node_1").waitFor();
  await page.locator("#activity .detail").getByText("node.id node_1").waitFor();
  await page.locator("#panel .history .detail").getByText("node.id node_1").waitFor();
});
