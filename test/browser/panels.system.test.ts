import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { UIDS } from "../../grafana/dashboard.ts";
import {
  emptyExplanation,
  emptyHistory,
  idleRemediation,
  idleStatus,
  policyStatus,
  SAMPLES_START_MS,
  verifiedAction,
} from "../web/api/remediation-view-fixture.ts";
import { buildFleet, stepsOf } from "../web/fleet-fixture.ts";
import { LargeFleet } from "./harness/large-fleet.ts";
import { openDaemon, useBrowser } from "./harness/page-visit.ts";
import { COLLECTOR_OFF } from "./harness/quiet-daemon.ts";

useBrowser();

test("banners name the operator, and link the section of the runbook and Grafana", async () => {
  const status = {
    ...(new LargeFleet(1).webDeps().status() as object),
    leader: { is_this: true, name: "proxywarden-1", url: null },
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
  const { page } = await openDaemon({
    status: () => status,
    remediation: () => ({
      ...idleRemediation,
      status: () => ({
        ...idleStatus,
        paused: { at: SAMPLES_START_MS, reason: "A deploy.", operator: "alice" },
        breaker: { openedAt: SAMPLES_START_MS, nodes: 12, causes: "12 under high-cpu" },
        trust: [{ reason: "inventory_shrunk", detail: "300 of 500 nodes" }],
        stormUntil: SAMPLES_START_MS,
        stormCause: "101 of 500 nodes were unhealthy",
        journal: "the journal can't be written: disk full",
        credentials: "POST /v1/nodes/node_1/reboot answered 401: the API key is not accepted",
        roundFailure: "no remediation round has succeeded for 20m: this must not happen",
      }),
    }),
  });
  await page.locator(".banner").getByText("03:00:00 by alice: A deploy. All actions are on hold.").waitFor();
  await page.locator(".banner").getByText("connect ECONNREFUSED. Node data is from 03:05:00.").waitFor();
  await page.locator(".banner").getByText("The new configuration was rejected").waitFor();
  await page.locator(".banner").getByText("after 12 nodes had fired or been lost (12 under high-cpu).").waitFor();
  const end = "All actions are on hold until one is tried, 15 minutes after the last rejection.";
  await page.locator(".banner").getByText(`answered 401: the API key is not accepted. ${end}`).waitFor();
  await page.locator(".banner").getByText("03:00:00: 101 of 500 nodes were unhealthy.").waitFor();
  await page.locator(".banner").getByText("for 20m: this must not happen. The log has the details.").waitFor();
  const links = () =>
    page.locator(".banner a").evaluateAll((found) => found.map((link) => String(link.getAttribute("href"))));
  const sections = [...readFileSync("docs/runbook.md", "utf8").matchAll(/^### (\w+)$/gm)].map(([, name]) => name!);
  const runbook = (await links()).flatMap((link) => link.split("https://docs.example.net/runbook#")[1] ?? []);
  expect(runbook).toHaveLength(9);
  expect(sections.map((name) => name.toLowerCase())).toEqual(expect.arrayContaining(runbook));
  expect(runbook.slice(0, 3)).toEqual(["proxywardenblind", "proxywardenpaused", "proxywardenbreakeropen"]);
  expect((await links()).filter((link) => link === `https://grafana.example.net/d/${UIDS.daemon}`)).toHaveLength(9);
  Object.assign(status.leader, { is_this: false });
  await page.locator(".banner").getByText("The leader is proxywarden-1.").waitFor();
  expect((await links())[0]).toBe("https://docs.example.net/runbook#proxywardennoleader");
  // A leader whose lease has ended is shown like a standby.
  expect(await page.locator(".banner").getByText("The service rejected the API key").count()).toBe(0);
  expect(await page.locator(".banner b").last().textContent()).toBe("The journal can't be reached");
});

test("a leader whose lease has ended does not claim to show no fleet", async () => {
  const status = {
    ...(new LargeFleet(1).webDeps().status() as object),
    leader: { is_this: false, name: null, url: null },
    nodes: { total: 500 },
    collectors: { nodes: { ...COLLECTOR_OFF, last_success_at: "2026-11-21T03:05:00.000Z" } },
  };
  const { page } = await openDaemon({ status: () => status });
  const text = "The lease of this daemon has ended, so it neither polls nor acts. Node data is from 03:05:00.";
  await page.locator(".banner").getByText(text).waitFor();
});

test("the panel of a held node says who or which policy holds it, since when and why", async () => {
  const at = SAMPLES_START_MS;
  const hold = { node: "node_1", policy: null, kind: "held", at, until: at + 7_200_000 } as const;
  const givenUp = { node: "node_1", policy: "reboot-offline", kind: "given_up", at, until: null } as const;
  const { page } = await openDaemon(
    {
      node: (id) => ({ id }),
      remediation: () => ({
        ...idleRemediation,
        explain: (node) =>
          stepsOf({
            ...emptyExplanation(node),
            at: at + 60_000,
            holds: [
              { ...hold, operator: "alice", reason: "alice holds it: disk swap" },
              { ...givenUp, reason: "2 episodes in a row did not heal it" },
            ],
          }),
      }),
    },
    "/#node/node_1",
  );
  await page.locator("#panel .banner").getByText("alice").waitFor();
  expect(await page.locator("#panel .banner span").allTextContents()).toEqual([
    "since 03:00:00, until 05:00:00: alice holds it: disk swap",
    "policy reboot-offline, since 03:00:00: 2 episodes in a row did not heal it",
  ]);
});

test("before the first walk the page does not claim that every node is healthy, or that one is gone", async () => {
  const status = { ...(new LargeFleet(1).webDeps().status() as object), nodes_complete: false };
  const remediation = { ...idleRemediation, historyOf: async () => ({ ...emptyHistory, actions: [verifiedAction] }) };
  const { page } = await openDaemon(
    { fleet: () => buildFleet([]), status: () => status, node: () => null, remediation: () => remediation },
    "/#node/node_1",
  );
  await page.locator("#attention-none").waitFor();
  expect(await page.locator("#attention-none").textContent()).toBe("No nodes are known.");
  expect(await page.locator("#attention-count").textContent()).toBe("");
  expect(await page.locator('[data-k="tile Online"]').textContent()).toBe("Online–no nodes known yet");
  expect(await page.locator('[data-k="tile Needs attention"] b').textContent()).toBe("–");
  const counts = await page.locator("#legend b, #marks b").allTextContents();
  expect(new Set(counts)).toEqual(new Set(["–"]));
  await page.evaluate(`location.hash = "#node/node_1?view=table"`);
  await page.locator("#node-table-rows").getByText("No nodes are known.").waitFor();
  await page.locator("#panel-title").getByText("unknown").waitFor();
  expect(await page.locator("#panel-body").innerText()).toContain("No policy is evaluated for this node.");
  status.nodes_complete = true;
  await page.locator("#panel-title").getByText("gone").waitFor();
});

test("a fleet that is known to have no nodes is shown as empty, not as unknown", async () => {
  const status = { ...(new LargeFleet(1).webDeps().status() as object), nodes_complete: false };
  const { page } = await openDaemon({ fleet: () => buildFleet([]), status: () => status }, "/#?view=table");
  await page.locator("#node-table-rows").getByText("No nodes are known.").waitFor();
  status.nodes_complete = true;
  await page.locator("#node-table-rows").getByText("The fleet has no nodes.").waitFor();
  expect(await page.locator("#attention-none").textContent()).toBe("The fleet has no nodes.");
  expect(await page.locator("#attention-count").textContent()).toBe("0 nodes");
  expect(await page.locator('[data-k="tile Online"]').textContent()).toBe("Online–0 of 0 nodes");
  expect(await page.locator('[data-k="tile Needs attention"] b').textContent()).toBe("0");
  const counts = await page.locator("#legend b, #marks b").allTextContents();
  expect(new Set(counts)).toEqual(new Set(["0"]));
});

test("a policy shows its counts, each once", async () => {
  const policy = {
    ...policyStatus,
    pending: 2,
    firing: 3,
    unknown: 4,
    episodes: { pending: 2, firing: 1, acting: 2, given_up: 0 },
  };
  const { page } = await openDaemon({ remediation: () => ({ ...idleRemediation, policies: () => stepsOf([policy]) }) });
  const counts = page.locator("#policies .fact");
  await counts.first().waitFor();
  const shown = [
    "matches 24 of 1,200 nodes",
    "2 pending",
    "3 firing",
    "1 waiting",
    "2 acting",
    "0 given up",
    "4 unknown",
  ];
  expect(await counts.allTextContents()).toEqual(shown);
});

test("the banner about an incomplete inventory offers to accept it only if the list was read to its end", async () => {
  const nodes: { failure: { reason: string; message: string } } & Omit<typeof COLLECTOR_OFF, "failure"> = {
    ...COLLECTOR_OFF,
    failure: { reason: "incomplete", message: "the list shows 490 records and counts 500" },
  };
  const status = { ...(new LargeFleet(1).webDeps().status() as object), collectors: { nodes } };
  const trust = [{ reason: "inventory_incomplete", detail: "the last walk missed 10 of 500 nodes" }];
  const { page } = await openDaemon({
    status: () => status,
    remediation: () => ({ ...idleRemediation, status: () => ({ ...idleStatus, trust }) }),
  });
  await page.locator(".banner").getByText("and counts 500. No walk has read all of it yet.").waitFor();
  const banner = page.locator(".banner").filter({ hasText: "Fleet data is not trusted" });
  await banner.getByText("the last walk missed 10 of 500 nodes").waitFor();
  expect(await banner.getByRole("button").allTextContents()).toEqual(["Accept inventory"]);
  // The daemon would reject the command after such a walk.
  nodes.failure = { reason: "timeout", message: "no response within 10 s" };
  trust[0]!.detail = "the last walk of the nodes was not complete";
  await banner.getByText("the last walk of the nodes was not complete").waitFor();
  expect(await banner.getByRole("button").count()).toBe(0);
});
