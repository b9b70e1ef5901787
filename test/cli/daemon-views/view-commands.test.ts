import { beforeAll, describe, expect, test } from "vitest";
import { inlineSecret } from "../../../src/platform/secret-file.ts";
import { billingMonthOf } from "../../../src/rate-limit/monthly-budget.ts";
import type { RemediationView } from "../../../src/remediation/status/views.ts";
import { nodesView } from "../../../src/web/api/node-views.ts";
import { remediationStatusView } from "../../../src/web/api/remediation-views.ts";
import { budgetView, type StatusSnapshot, statusView } from "../../../src/web/api/status-views.ts";
import { START_MS, startVirtualDaemon, stopVirtualDaemon } from "../../harness/virtual-daemon.ts";
import { createTempFolder } from "../../integration/folder.ts";
import {
  awaitingAction,
  heldDecision,
  idleRemediation,
  idleStatus,
  policyStatus,
  recordingCommands,
  SAMPLES_START_MS,
  sampleRemediation,
  verifiedAction,
} from "../../web/api/remediation-view-fixture.ts";
import { buildFleet } from "../../web/fleet-fixture.ts";
import { adminOperators, startTestServer } from "../../web/http/test-server.ts";
import { runInProcess } from "../terminal.ts";

const MINUTE = 60_000;

describe("status and nodes show a fleet", () => {
  let known: StatusSnapshot;
  beforeAll(async () => {
    const daemon = await startVirtualDaemon({ scenario: { nodes: 40, sessions: 200 } });
    await daemon.clock.advance(5 * MINUTE);
    known = {
      ...{ version: "1.2.3", startedAt: START_MS, now: daemon.clock.now(), monotonic: daemon.clock.monotonic() },
      snapshot: daemon.snapshots.last,
      plan: daemon.collectorManager.plan(),
      collectors: daemon.collectorManager.collectorHealth(),
      ledger: daemon.rateLimiter.ledger,
      month: billingMonthOf(daemon.clock.now(), 1),
      clockSkewMs: null,
    };
    await stopVirtualDaemon(daemon);
  });

  const startFleetServer = (remediation: RemediationView = idleRemediation) =>
    startTestServer({
      status: () => statusView(known),
      budget: () => budgetView(known),
      nodes: (query) => nodesView(known, query),
      remediation: () => remediation,
    });

  test("status shows nodes, limits, collectors and policies", async () => {
    const { url } = await startFleetServer({ ...idleRemediation, policies: () => [policyStatus] });
    const { code, out, err } = await runInProcess("status", "--url", url);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^daemon {4}proxywarden 1\.2\.3, up 5m\nnodes {5}40: \d+ online/);
    expect(out).toContain("mode      safety.mode is enforce; 0 actions in flight, 0 approvals waiting\n");
    expect(out).toMatch(/\nlimits {4}node_management: \d+ left of 100 a minute, burst 200\n/);
    expect(out).toMatch(/\nnodes +every 1m +\d+s +\d+s +ok\n/);
    expect(out).toContain("\nreboot-offline  enforce  2        1       1 firing\n");
    expect(out).not.toContain("held");
  });

  test("status shows everything that holds actions", async () => {
    const status = {
      ...idleStatus,
      paused: { at: SAMPLES_START_MS, until: SAMPLES_START_MS, reason: "deploy", operator: "alice" },
      breaker: { openedAt: SAMPLES_START_MS, nodes: 12 },
      trust: [{ reason: "inventory_shrunk", detail: "20 nodes are listed" } as const],
    };
    const { url } = await startFleetServer({ ...idleRemediation, status: () => status });
    const { out } = await runInProcess("status", "--url", url);
    expect(out).toContain(
      "held      paused since 2026-11-21 03:00:00 UTC by alice, until 2026-11-21 03:00:00 UTC: deploy\n",
    );
    expect(out).toContain(
      "held      the circuit breaker is open since 2026-11-21 03:00:00 UTC: 12 nodes fired; reset-breaker closes it\n",
    );
    expect(out).toContain("held      inventory_shrunk: 20 nodes are listed\n");
    const { out: json } = await runInProcess("status", "--url", url, "--output", "json");
    expect(JSON.parse(json)).toMatchObject({
      status: { version: "1.2.3", warden: remediationStatusView(status, 0) },
      budget: { month: { calls: expect.any(Number) } },
      policies: [],
    });
  });

  test("nodes lists the nodes that match the filters, and says how many there are", async () => {
    const { url } = await startFleetServer();
    const run = (...args: readonly string[]) => runInProcess("nodes", "--url", url, ...args);
    const all = JSON.parse((await run("--output", "json")).out) as {
      nodes: { id: string; name: string; region: string }[];
      total: number;
    };
    expect(all.total).toBe(40);
    const { name, region } = all.nodes[0]!;
    const there = all.nodes.filter((node) => node.region === region);
    const { out } = await run("--region", region, "--limit", "1");
    expect(out).toMatch(/^name +id +status +country +region +last seen +uptime +sessions +observed\n/);
    expect(out.split("\n")).toHaveLength(4);
    expect(out).toContain(`1 of ${there.length} nodes: see --limit and the filters\n`);
    expect((await run("--search", name)).out.split("\n")).toHaveLength(3);
    expect((await run("--status", "quarantined")).out).toBe("no nodes\n");
    expect((await run("--status", "ofline")).code).toBe(2);
  });
});

const fleet = buildFleet([
  { id: "node_1", region: "eu-west" },
  { id: "node_2", region: "us-east" },
]);

describe("decisions and actions", () => {
  /** A minute apart, newest first, on both nodes in turn. */
  const decisions = Array.from({ length: 2_500 }, (_, index) => ({
    ...heldDecision,
    at: heldDecision.at - index * MINUTE,
    node: index % 50 === 49 ? "node_2" : "node_1",
  }));
  const startJournalServer = () =>
    startTestServer({
      fleet: () => fleet,
      remediation: () => ({
        ...sampleRemediation(),
        decisions: async ({ node, until = Number.POSITIVE_INFINITY, limit }) =>
          decisions.filter((row) => row.at <= until && (node ?? row.node) === row.node).slice(0, limit),
        actions: async () => [verifiedAction],
      }),
    });

  test("decisions shows the latest ones with the names of their nodes", async () => {
    const { url } = await startJournalServer();
    expect(await runInProcess("decisions", "--url", url, "--limit", "1")).toEqual({
      code: 0,
      err: "",
      out: `time                     node                     policy          step  mode     verdict  reasons
2026-11-21 03:15:00 UTC  name of node_1 (node_1)  reboot-offline  2     enforce  hold     window, max_actions
`,
    });
  });

  test("decisions of a region or a node are found among those of others, and --since leaves out older ones", async () => {
    const { url } = await startJournalServer();
    const nodesOf = async (...args: readonly string[]) => {
      const { out } = await runInProcess("decisions", "--url", url, "--output", "json", ...args);
      return (JSON.parse(out) as { node: string }[]).map(({ node }) => node);
    };
    expect(await nodesOf("--region", "us-east", "--limit", "45")).toEqual(Array(45).fill("node_2"));
    expect(await nodesOf("--node", "name of node_2", "--limit", "3")).toEqual(Array(3).fill("node_2"));
    expect(await nodesOf("--country", "FR")).toEqual([]);
    expect(await nodesOf("--since", "2026-11-21T03:13:00Z")).toEqual(Array(3).fill("node_1"));
  });

  test("actions shows what was sent and its outcome", async () => {
    const { url } = await startJournalServer();
    const { out } = await runInProcess("actions", "--url", url);
    expect(out).toContain(
      "2026-11-21 03:20:01 UTC  act-2  name of node_1 (node_1)  eu-west  reboot-offline  2     forced reboot  verified  HTTP 200\n",
    );
    expect((await runInProcess("actions", "--url", url, "--region", "us-east")).out).toBe("no actions\n");
  });
});

describe("a node is named by its id or its name", () => {
  test("explain, hold and release find the node with the name", async () => {
    const recorded: string[][] = [];
    const { url } = await startTestServer({
      fleet: () => fleet,
      node: (id) => (id === "node_2" ? { id, status: "online" } : null),
      commands: () => recordingCommands(recorded),
      operators: () => adminOperators(inlineSecret("sesame")),
    });
    const token = createTempFolder().write("token", "sesame");
    expect((await runInProcess("explain", "name of node_2", "--url", url)).out).toMatch(/^node_2, at/);
    for (const command of ["hold", "release"]) {
      await runInProcess(command, "name of node_2", "--url", url, "--token-file", token);
    }
    expect(recorded).toEqual([
      ["hold", "node_2", "no reason given"],
      ["release", "node_2"],
    ]);
    expect(await runInProcess("explain", "nowhere", "--url", url)).toMatchObject({
      code: 1,
      err: 'proxywarden: no node "nowhere" in the fleet\n',
    });
  });

  test("a name of several nodes is an error that lists their ids", async () => {
    const twins = buildFleet([
      { id: "node_1", name: "fra-1" },
      { id: "node_2", name: "fra-1" },
    ]);
    const { url } = await startTestServer({ fleet: () => twins });
    expect(await runInProcess("explain", "fra-1", "--url", url)).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: several nodes have the name fra-1: use one of the ids node_1, node_2\n",
    });
  });

  test("approvals shows the names of nodes", async () => {
    const { url } = await startTestServer({
      fleet: () => fleet,
      remediation: () => ({ ...idleRemediation, approvals: () => [awaitingAction] }),
    });
    expect((await runInProcess("approvals", "--url", url)).out).toMatch(
      /^act-3 {2}quarantine for 1d name of node_1 \(node_1, DE, eu-west\)\n/,
    );
  });
});
