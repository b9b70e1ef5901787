import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { ok } from "../../src/base/result.ts";
import type { Episode } from "../../src/model/remediation/episode.ts";
import type { NodeExplanation, NodeHistory } from "../../src/remediation/status/views.ts";
import type { WebDeps } from "../../src/web/http/route.ts";
import { waitUntil } from "../integration/wait-until.ts";
import {
  awaitingAction,
  emptyHistory,
  episode,
  heldDecision,
  SAMPLES_START_MS,
  sampleExplanation,
  sampleRemediation,
  verifiedAction,
} from "../web/api/remediation-view-fixture.ts";
import { stepsOf } from "../web/fleet-fixture.ts";
import { adminOperators } from "../web/http/test-server.ts";
import { accessibilityViolations } from "./harness/accessibility.ts";
import { LargeFleet } from "./harness/large-fleet.ts";
import { openDaemon, useBrowser } from "./harness/page-visit.ts";

useBrowser();

/** Opens the page with the panel of node_1, which is online. */
const openPanel = (deps: Partial<WebDeps>, address = "/#node/node_1") =>
  openDaemon({ node: (id) => ({ id, status: "online", ip_address: "192.0.2.7" }), ...deps }, address);

/** Remediation whose explanation is a minute older at each request. */
function agingRemediation(change: (explanation: NodeExplanation) => NodeExplanation = (same) => same) {
  let minutes = 0;
  return {
    ...sampleRemediation(),
    explain: (node: string) =>
      stepsOf(change({ ...sampleExplanation(node), at: SAMPLES_START_MS + 60_000 * minutes++ })),
  };
}

/** Waits until the panel was refreshed. */
async function untilRefreshed(page: Page): Promise<void> {
  const text = page.locator("#panel-body");
  const before = await text.innerText();
  await waitUntil("the panel is refreshed", async () => (await text.innerText()) !== before);
}

test("a refresh of the panel keeps selected text, and policies that the user closed", async () => {
  const remediation = agingRemediation();
  const { page } = await openPanel({ remediation: () => remediation });
  const policy = page.locator("#panel details");
  await policy.locator("summary").click();
  expect(await policy.getAttribute("open")).toBe(null);
  await page.locator("#panel dd").getByText("192.0.2.7").selectText();
  await untilRefreshed(page);
  expect(await policy.getAttribute("open")).toBe(null);
  expect(await page.evaluate<string>("getSelection().toString()")).toBe("192.0.2.7");
});

test("long names, addresses and versions stay within their place in the panel", async () => {
  const node = {
    name: "n".repeat(200),
    ip_address: "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    version: "v".repeat(80),
  };
  const { page } = await openPanel({ node: (id) => ({ id, ...node }), remediation: () => sampleRemediation() });
  await page.locator("#panel .approval").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 800 });
    const tooWide = await page
      .locator("#panel, #panel .approval, #panel .node-facts div")
      .evaluateAll((boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent));
    expect(tooWide).toEqual([]);
  }
});

test("the panel of a healthy node has no accessibility violations", async () => {
  const { page } = await openPanel({ remediation: () => sampleRemediation() });
  await page.locator("#panel-title").getByText("online").waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
});

test("the panel keeps an explanation that can't be read again, and says that it is not up to date", async () => {
  const { page } = await openPanel({ remediation: () => sampleRemediation() });
  const address = page.locator("#panel dd").getByText("192.0.2.7");
  await address.waitFor();
  await page.context().setOffline(true);
  const problem = page.locator("#panel .problem");
  await problem.getByText("Not up to date: the daemon does not respond").waitFor();
  expect(await address.isVisible()).toBe(true);
  await page.context().setOffline(false);
  await problem.waitFor({ state: "hidden" });
  // The daemon responds that there is no such node any more.
  await page.route("**/api/v1/nodes/*", (route) => route.fulfill({ status: 404, json: { message: "no such node" } }));
  await problem.getByText("no such node").waitFor();
  expect(await address.count()).toBe(0);
  expect(await page.locator("#panel-title").textContent()).toBe("node_1");
  expect(await page.locator("#panel-commands button").count()).toBe(0);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a time that an expression read is shown in the local time zone", async () => {
  const { page } = await openPanel({ remediation: () => sampleRemediation() });
  await page.locator("#panel .fields").getByText("21 Nov 02:40:00", { exact: true }).waitFor();
});

test("a closed policy opens when it begins to fire", async () => {
  let verdict: "true" | "false" = "false";
  const remediation = agingRemediation(({ policies: [policy], ...rest }) => ({
    ...rest,
    policies: [{ ...policy!, verdict, ...(verdict === "true" ? {} : { timer: null, episode: null }) }],
  }));
  const { page } = await openPanel({ remediation: () => remediation });
  const policy = page.locator("#panel details");
  await policy.waitFor();
  expect(await policy.getAttribute("open")).toBe(null);
  verdict = "true";
  await policy.getByText("ep-1").waitFor();
  expect(await policy.getAttribute("open")).toBe("");
});

test("a timer shows for how long the condition has been true or false, unless it has just changed", async () => {
  const timers = [
    { trueMs: 2_400_000, clearMs: 0 },
    { trueMs: 0, clearMs: 30_000 },
    { trueMs: 0, clearMs: 0 },
    { trueMs: 60_000, clearMs: 0, state: "pending" },
  ] as const;
  const remediation = agingRemediation(({ policies: [policy], ...rest }) => ({
    ...rest,
    policies: timers.map((timer, at) => ({
      ...policy!,
      policy: `policy-${at}`,
      timer: { ...policy!.timer!, ...timer },
    })),
  }));
  const { page } = await openPanel({ remediation: () => remediation });
  await page.locator("#panel .timer").first().waitFor();
  expect(await page.locator("#panel .timer").allTextContents()).toEqual([
    "firing true for 40m",
    "firing false again for 30s",
    "firing",
    "pending 1m of 15m; another status was last seen at 03:14:00",
  ]);
});

test("a step that healed the node is done, and steps that can no longer be taken are not", async () => {
  const episodes: readonly Episode[] = [
    { ...episode, state: "recovering", acted: 2, healed: true },
    { ...episode, state: "suspended", step: 4 },
  ];
  const remediation = agingRemediation(({ policies: [policy], ...rest }) => ({
    ...rest,
    policies: episodes.map((each, at) => ({ ...policy!, policy: `policy-${at}`, episode: each })),
  }));
  const { page } = await openPanel({ remediation: () => remediation });
  await page.locator("#panel .steps").first().waitFor();
  expect(await page.locator("#panel .steps li").allTextContents()).toEqual([
    ...["disconnect (done)", "forced reboot (done)", "quarantine (later)", "notify (later)"],
    ...["disconnect (done)", "forced reboot (not taken)", "quarantine (not taken)", "notify (not taken)"],
  ]);
});

test("entries of the history that have the same time are in the order in which they happened", async () => {
  const [begin, end] = [SAMPLES_START_MS, SAMPLES_START_MS + 600_000];
  const history: NodeHistory = {
    ...emptyHistory,
    episodes: [{ ...episode, state: "given_up", openedAt: begin, closedAt: end }],
    decisions: [{ ...heldDecision, at: begin }],
    actions: [{ ...verifiedAction, outcome: "ineffective", createdAt: begin, sentAt: begin, endedAt: end }],
  };
  const remediation = { ...agingRemediation(), historyOf: async () => history };
  const { page } = await openPanel({ remediation: () => remediation });
  await page.locator("#panel .history").waitFor();
  const badges = await page.locator("#panel .history .badge").allTextContents();
  expect(badges).toEqual(["given up", "ineffective", "hold", "opened"]);
});

test("the panel shows a node although the fleet changes faster than its explanation arrives", async () => {
  const fleet = new LargeFleet(500);
  const { page } = await openPanel({ ...fleet.webDeps() }, "/");
  const online = page.locator("#legend b").first();
  let explanations = 0;
  await page.route("**/api/v1/nodes/*", async (route) => {
    const response = await route.fetch();
    const before = await online.textContent();
    fleet.change(7);
    await waitUntil("the page shows the change", async () => (await online.textContent()) !== before);
    await route.fulfill({ response });
    explanations++;
  });
  await page.evaluate(`location.hash = "#node/node_1"`);
  await page.locator("#panel dd").getByText("192.0.2.7").waitFor();
  await waitUntil("the explanation is read again", () => explanations > 2);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("the panel of a standby does not claim that nothing would hold an action, and offers to hold the node", async () => {
  const standsBy = { field: "the node", why: "this daemon stands by; only the leader, alpha, observes the fleet" };
  const remediation = agingRemediation(({ policies: [policy], ...rest }) => ({
    ...rest,
    known: false,
    policies: [{ ...policy!, verdict: "unknown", matched: null, unknowns: [standsBy], fields: {}, blockers: [] }],
  }));
  const status = { ...(new LargeFleet(1).webDeps().status() as object), nodes_complete: false };
  const { page } = await openPanel({ node: () => null, status: () => status, remediation: () => remediation });
  await page.locator("#panel .unknown").getByText(standsBy.why).waitFor();
  expect(await page.locator("#panel .guards-none").count()).toBe(0);
  expect(await page.locator("#panel .node-facts").innerText()).not.toContain("never");
  await page.locator("#panel-commands").getByRole("button", { name: "Hold" }).waitFor();
});

test("the panel offers to release a node whose step was rejected", async () => {
  const rejected = { ...awaitingAction, episode: episode.id, step: episode.step, state: "rejected" } as const;
  const history = { ...emptyHistory, actions: [rejected] };
  const remediation = { ...agingRemediation(), approvals: () => [], historyOf: async () => history };
  const { page } = await openPanel({ remediation: () => remediation });
  await page.locator("#panel-commands").getByRole("button", { name: "Release" }).waitFor();
});

test.each([
  ["to where it was", false],
  ["to a link to the same node if its row was replaced", true],
])("closing the panel returns the focus %s, also where the panel covers the page", async (_, isChanged) => {
  const fleet = new LargeFleet(8);
  const { page } = await openPanel({ ...fleet.webDeps() }, "/#?view=table");
  await page.setViewportSize({ width: 720, height: 500 });
  const link = page.locator("#attention a");
  await link.focus();
  await page.keyboard.press("Enter");
  await page.locator("#panel .panel-id").waitFor();
  if (isChanged) {
    fleet.set({ 7: "rebooting" });
    await page.locator("#attention").getByText("rebooting").waitFor();
  }
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect(await page.locator("a:focus").getAttribute("href")).toContain("node_7");
  if (!isChanged) expect(await page.locator("#attention a:focus").count()).toBe(1);
});

test("closing the panel returns the focus to the link to the node, also if the node has changed since", async () => {
  const fleet = new LargeFleet(3);
  const { page } = await openPanel({ ...fleet.webDeps() }, "/#?view=table");
  await page.locator("#node-table-rows").getByText("name of node_1").focus();
  await page.keyboard.press("Enter");
  await page.locator("#panel .panel-id").waitFor();
  fleet.set({ 1: "offline" });
  await page.locator("#node-table-rows").getByText("offline").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect(await page.evaluate<string>("document.activeElement.textContent")).toBe("name of node_1");
});

test("closing the panel returns the focus to the link of the node that was opened last", async () => {
  const { page } = await openPanel({ ...new LargeFleet(3).webDeps() }, "/#?view=table");
  for (const id of ["node_0", "node_1"]) {
    await page.locator("#node-table-rows").getByText(`name of ${id}`).focus();
    await page.keyboard.press("Enter");
    await page.locator("#panel .panel-id").getByText(id).waitFor();
  }
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect(await page.evaluate<string>("document.activeElement.textContent")).toBe("name of node_1");
});

test("closing the panel moves the focus to the search if the node was opened from a search in the table view", async () => {
  const { page } = await openPanel({ ...new LargeFleet(3).webDeps() }, "/#?view=table");
  await page.locator("#search").fill("node_1");
  await page.locator("#found a").focus();
  await page.keyboard.press("Enter");
  await page.locator("#panel .panel-id").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
  expect(await page.evaluate<string>("document.activeElement.id")).toBe("search");
});

test("a slash in a dialog does not close the panel that is covered by the dialog", async () => {
  const { page } = await openPanel({ operators: () => adminOperators({ value: () => "x", refresh: () => ok(false) }) });
  await page.setViewportSize({ width: 720, height: 500 });
  await page.locator("#panel-commands").getByRole("button", { name: "Hold" }).click();
  await page.getByRole("button", { name: "Cancel" }).focus();
  await page.keyboard.press("/");
  await page.getByRole("button", { name: "Cancel" }).click();
  expect(await page.evaluate<string>("location.hash")).toContain("node/node_1");
});

test("the focus stays in the panel when the focused button disappears", async () => {
  let history: typeof emptyHistory = { ...emptyHistory, actions: [awaitingAction] };
  const remediation = { ...agingRemediation(), historyOf: async () => history };
  const operators = () => adminOperators({ value: () => "x", refresh: () => ok(false) });
  const { page } = await openPanel({ remediation: () => remediation, operators });
  const reject = page.locator("#panel .approval").getByRole("button", { name: "Reject" });
  await reject.focus();
  history = emptyHistory;
  await reject.waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await page.locator("#panel").waitFor({ state: "hidden" });
});
