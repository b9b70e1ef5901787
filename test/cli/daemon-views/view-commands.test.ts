import { beforeAll, describe, expect, test } from "vitest";
import type { ApiError } from "../../../src/api-client/errors.ts";
import type { HeldNode, RemediationView } from "../../../src/remediation/status/views.ts";
import { nodesView } from "../../../src/web/api/node-views.ts";
import { remediationStatusView } from "../../../src/web/api/remediation-views.ts";
import { budgetView, type StatusSnapshot, statusView } from "../../../src/web/api/status-views.ts";
import { startVirtualDaemon, statusSnapshotOf, stopVirtualDaemon } from "../../harness/virtual-daemon.ts";
import {
  heldDecision,
  idleRemediation,
  idleStatus,
  policyStatus,
  SAMPLES_START_MS,
  sampleRemediation,
  verifiedAction,
} from "../../web/api/remediation-view-fixture.ts";
import { buildFleet, stepsOf } from "../../web/fleet-fixture.ts";
import { startTestServer } from "../../web/http/test-server.ts";
import { runInProcess } from "../terminal.ts";

const MINUTE = 60_000;

describe("status and nodes show a fleet", () => {
  let known: StatusSnapshot;
  beforeAll(async () => {
    const daemon = await startVirtualDaemon({ scenario: { nodes: 40, sessions: 200 } });
    await daemon.clock.advance(5 * MINUTE);
    known = statusSnapshotOf(daemon);
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
    const { url } = await startFleetServer({ ...idleRemediation, policies: () => stepsOf([policyStatus]) });
    const { code, out, err } = await runInProcess("status", "--url", url);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^daemon {8}proxywarden 1\.2\.3, up 5m\nnodes {9}40: \d+ online/);
    expect(out).toContain("mode          safety.mode is enforce; 0 actions in flight, 0 approvals waiting\n");
    expect(out).toMatch(/\nlimits {8}node_management: \d+ left; 100 a minute, burst 200\n/);
    expect(out).toMatch(/\nnodes +every 1m +(\d+s|1m) +(\d+s|1m) +ok\n/);
    expect(out).toContain("\nreboot-offline  enforce  2        1       3        1 waiting\n");
    expect(out).not.toContain("held");
  });

  test("status lists the nodes that are held longest, and nodes --held all of them", async () => {
    const held = Array.from(
      { length: 12 },
      (_, index): HeldNode => ({
        ...{ node: `node_${index}`, name: `iad-${index}`, country: "US", region: index < 2 ? "us-east" : "us-west" },
        ipAddress: `10.0.1.${index}`,
        ...{ policy: "reboot-offline", heldMs: (20 - index) * MINUTE, until: null, reasons: ["canary"] },
      }),
    );
    const byOperator = { policy: null, reasons: ["held"] as const, until: SAMPLES_START_MS };
    held[0] = { ...held[0]!, reasons: ["canary", "in_flight"] };
    held[1] = { ...held[1]!, ...byOperator };
    const { url } = await startFleetServer({
      ...idleRemediation,
      heldNodes: ({ limit }) => stepsOf(held.slice(0, limit)),
      heldNodeCount: () => stepsOf(held.length),
    });
    const { out } = await runInProcess("status", "--url", url);
    const table = out.slice(out.indexOf("held node ")).split("\n");
    expect(table.slice(0, 3)).toEqual([
      "held node       policy          for  reasons",
      "iad-0 (node_0)  reboot-offline  20m  canary, in_flight",
      "iad-1 (node_1)  -               19m  held until 2026-11-21 03:00:00 UTC",
    ]);
    expect(table.slice(11)).toEqual([
      "and 2 more: npm start -- nodes --held",
      "canary ends automatically, once an action is verified, or the canary's episode ends or can't proceed; if the canary is lost, once it is available again, or with accept-inventory",
      "in_flight ends automatically, once one is verified or its time is up",
      "held ends with release, or after the duration given with --for",
      "",
    ]);
    const listHeld = async (...options: string[]) =>
      (await runInProcess("nodes", "--held", "--url", url, ...options)).out;
    expect((await listHeld("--region", "us-east")).match(/^iad-\d+/gm)).toEqual(["iad-0", "iad-1"]);
    expect((await listHeld("--country", "us")).match(/^iad-/gm)).toHaveLength(12);
    expect((await listHeld("--search", "10.0.1.7")).match(/^iad-\d+/gm)).toEqual(["iad-7"]);
    expect(await listHeld("--search", "10.0.1.70")).toBe("none of the held nodes matches the filters\n");
    expect(await listHeld("--limit", "3")).toContain("\n3 of 12 held nodes:");
  });

  test("status shows how old the counts are while the service can't be reached", async () => {
    const { nodes } = known.collectors;
    const failure = { kind: "unreachable", message: "connect ECONNREFUSED" } as ApiError;
    const collectors = { ...known.collectors, nodes: { ...nodes, lastSuccessAt: known.now - 2 * MINUTE, failure } };
    const { url } = await startTestServer({
      status: () => statusView({ ...known, collectors }),
      budget: () => budgetView(known),
      remediation: () => idleRemediation,
    });
    const { out } = await runInProcess("status", "--url", url);
    expect(out).toMatch(/\nnodes {9}40: .*, 2m ago \(can't be read now: unreachable: connect ECONNREFUSED\)\n/);
  });

  test("status shows everything that holds actions", async () => {
    const status = {
      ...idleStatus,
      paused: { at: SAMPLES_START_MS, until: SAMPLES_START_MS, reason: "deploy", operator: "alice" },
      breaker: { openedAt: SAMPLES_START_MS, nodes: 12 },
      ...{ stormUntil: SAMPLES_START_MS, roundFailure: "no round has succeeded" },
      trust: [{ reason: "inventory_shrunk", detail: "20 nodes are listed" } as const],
    };
    const { url } = await startFleetServer({ ...idleRemediation, status: () => status });
    const { out } = await runInProcess("status", "--url", url);
    expect(out).toContain(
      "actions held  paused since 2026-11-21 03:00:00 UTC by alice, until 2026-11-21 03:00:00 UTC: deploy\n",
    );
    expect(out).toContain(
      "actions held  the circuit breaker has been open since 2026-11-21 03:00:00 UTC: 12 nodes fired or were lost; reset-breaker closes it\n",
    );
    expect(out).toContain(
      "actions held  storm: too many nodes unhealthy; actions held until at least 2026-11-21 03:00:00 UTC\nactions held  no round has succeeded\n",
    );
    expect(out).toContain("actions held  inventory_shrunk: 20 nodes are listed\n");
    const { out: json } = await runInProcess("status", "--url", url, "--output", "json");
    expect(JSON.parse(json)).toMatchObject({
      status: { version: "1.2.3", remediation: remediationStatusView(status, 0, 0) },
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

  test("orders shows who gave which command, and its result", async () => {
    const given = { at: SAMPLES_START_MS, command: "hold", operator: "alice", node: "node_1", action: null } as const;
    const { url } = await startTestServer({
      remediation: () => ({
        ...idleRemediation,
        operatorCommands: async () => [
          { ...given, command: "pause", node: null, detail: "paused: a deploy" },
          { ...given, detail: "node_1 is held" },
        ],
      }),
    });
    expect((await runInProcess("orders", "--url", url)).out).toBe(
      `time                     command  operator  node    result
2026-11-21 03:00:00 UTC  pause    alice     -       paused: a deploy
2026-11-21 03:00:00 UTC  hold     alice     node_1  node_1 is held
`,
    );
  });

  test("actions are found by where the node was then, even at a daemon that knows no nodes", async () => {
    const { url } = await startTestServer({
      remediation: () => ({ ...idleRemediation, actions: async () => [verifiedAction] }),
    });
    const rowsOf = async (...args: readonly string[]) =>
      JSON.parse((await runInProcess("actions", "--url", url, "--output", "json", ...args)).out);
    expect(await rowsOf("--region", "eu-west", "--country", "de")).toMatchObject([{ id: "act-2" }]);
    expect(await rowsOf("--region", "us-east")).toEqual([]);
  });

  test("--since compares the time that is shown", async () => {
    const { url } = await startJournalServer();
    const { createdAt, sentAt } = verifiedAction;
    expect(sentAt).toBeGreaterThan(createdAt);
    const since = (at: number) => runInProcess("actions", "--url", url, "--since", new Date(at).toISOString());
    expect((await since(sentAt!)).out).toContain("act-2");
    expect((await since(sentAt! + 1)).out).toBe("no actions\n");
  });

  test("decisions of a region say that the daemon knows no nodes, and how many have an unknown location", async () => {
    const left = { ...heldDecision, node: "node_that_left" };
    const remediation = () => ({ ...idleRemediation, decisions: async () => [heldDecision, left] });
    const standby = await startTestServer({
      remediation,
      status: () => ({ leader: { is_this: false, name: "proxywarden-1", url: null } }),
    });
    expect(await runInProcess("decisions", "--url", standby.url, "--region", "eu-west")).toEqual({
      code: 1,
      out: "",
      err: "proxywarden: this daemon stands by and knows no nodes: ask the leader at proxywarden-1\n",
    });
    const { url } = await startTestServer({ remediation, fleet: () => fleet });
    const { out, err } = await runInProcess("decisions", "--url", url, "--region", "eu-west");
    expect(out.match(/node_\w+/g)).toEqual(["node_1", "node_1"]);
    expect(err).toBe("proxywarden: 1 decision with an unknown location left out: the node is no longer in the fleet\n");
  });

  test("a list says so if not all rows were searched", async () => {
    let requests = 0;
    const decisionsAt = (at: (index: number) => number, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        ...heldDecision,
        at: at(index),
        node: `node_${1 + (index % 2)}`,
      }));
    const search = async (rows: readonly (typeof heldDecision)[], ...args: readonly string[]) => {
      const { url } = await startTestServer({
        fleet: () => fleet,
        remediation: () => ({
          ...idleRemediation,
          decisions: async ({ until = Number.POSITIVE_INFINITY, limit }) => {
            requests++;
            return rows.filter(({ at }) => at <= until).slice(0, limit);
          },
        }),
      });
      return runInProcess("decisions", "--url", url, "--output", "json", ...args);
    };
    const note =
      "proxywarden: not all rows were searched: there may be more decisions; use --since, --node or --policy\n";
    const many = decisionsAt((index) => heldDecision.at - index * MINUTE, 21_000);
    expect((await search(many, "--country", "FR")).err).toBe(note);
    expect(requests).toBe(20);
    // As many rows at one time as a page has, and an older one of the wanted country.
    const atOnce = [
      ...decisionsAt(() => heldDecision.at, 1_000).map((row) => ({ ...row, node: "node_1" })),
      { ...heldDecision, at: heldDecision.at - MINUTE, node: "node_2" },
    ];
    const { out, err } = await search(atOnce, "--region", "us-east");
    expect(JSON.parse(out)).toMatchObject([{ node: "node_2" }]);
    expect(err).toBe(note);
    expect((await search(many.slice(0, 5), "--country", "FR")).err).toBe("");
  });
});
