import { beforeAll, describe, expect, test } from "vitest";
import type { ApiError } from "../../../src/api-client/errors.ts";
import type { HeldNode, RemediationView } from "../../../src/remediation/status/views.ts";
import { nodesView } from "../../../src/web/api/node-views.ts";
import { remediationStatusView } from "../../../src/web/api/remediation-views.ts";
import { budgetView, type StatusSnapshot, statusView } from "../../../src/web/api/status-views.ts";
import { startVirtualDaemon, statusSnapshotOf, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { idleRemediation, idleStatus, policyStatus, SAMPLES_START_MS } from "../../web/api/remediation-view-fixture.ts";
import { stepsOf } from "../../web/fleet-fixture.ts";
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
    expect(out).toContain("\nreboot-offline  enforce  24 of 1,200 nodes  2        1       3        1 waiting\n");
    expect(out).not.toContain("held");
  });

  test("status lists the nodes that are held longest, and nodes --held all of them", async () => {
    const held = Array.from(
      { length: 12 },
      (_, index): HeldNode => ({
        node: `node_${index}`,
        name: `iad-${index}`,
        country: "US",
        region: index < 2 ? "us-east" : "us-west",
        ipAddress: `10.0.1.${index}`,
        policy: "reboot-offline",
        heldMs: (20 - index) * MINUTE,
        until: null,
        reasons: ["canary"],
      }),
    );
    const byOperator = { policy: null, reasons: ["held", "ownership"] as const, until: SAMPLES_START_MS };
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
      "iad-1 (node_1)  -               19m  held and ownership until 2026-11-21 03:00:00 UTC",
    ]);
    expect(table.slice(11)).toEqual([
      "and 2 more: npm start -- nodes --held",
      "canary ends automatically, once an action is verified, or the canary's episode ends or can't proceed; if the canary is lost, once it is available again, or with accept-inventory",
      "in_flight ends automatically, once one is verified or its time is up",
      "held ends with release, or after the duration given with --for",
      expect.stringMatching(/^ownership ends automatically, /),
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

  test("status and nodes say that the first walk has not completed yet", async () => {
    const snapshot = { ...known.snapshot!, fleet: { ...known.snapshot!.fleet, settledAt: null, walkedAt: null } };
    const early = { ...known, snapshot };
    const { url } = await startTestServer({
      status: () => statusView(early),
      budget: () => budgetView(early),
      nodes: (query) => nodesView(early, query),
    });
    const { out } = await runInProcess("status", "--url", url);
    expect(out).toMatch(/\nnodes {9}40: .* so far; the first walk of the list has not completed yet\n/);
    const note =
      "proxywarden: the first walk of the node list has not completed yet: only the nodes read so far are known\n";
    expect(await runInProcess("nodes", "--url", url)).toMatchObject({ code: 0, err: note });
    const unknown = await runInProcess("nodes", "--region", "mars", "--url", url);
    expect(unknown.out).toBe("no nodes\n");
    expect(unknown.err).toContain(note);
  });

  test("status shows everything that holds actions", async () => {
    const status = {
      ...idleStatus,
      paused: { at: SAMPLES_START_MS, until: SAMPLES_START_MS, reason: "deploy", operator: "alice" },
      breaker: { openedAt: SAMPLES_START_MS, nodes: 12, causes: "12 under high-cpu" },
      stormUntil: SAMPLES_START_MS,
      stormCause: "101 of 500 nodes were unhealthy",
      credentials: "the service answered 401",
      roundFailure: "no round has succeeded",
      trust: [{ reason: "inventory_shrunk", detail: "20 nodes are listed" } as const],
    };
    const { url } = await startFleetServer({ ...idleRemediation, status: () => status });
    const { out } = await runInProcess("status", "--url", url);
    expect(out).toContain(
      "actions held  paused since 2026-11-21 03:00:00 UTC by alice, until 2026-11-21 03:00:00 UTC: deploy\n",
    );
    expect(out).toContain(
      "actions held  the circuit breaker has been open since 2026-11-21 03:00:00 UTC, after 12 nodes had fired or been lost (12 under high-cpu); reset-breaker closes it\n",
    );
    expect(out).toContain(
      "actions held  storm: 101 of 500 nodes were unhealthy; actions held until at least 2026-11-21 03:00:00 UTC\nactions held  no round has succeeded\n",
    );
    expect(out).toContain("actions held  inventory_shrunk: 20 nodes are listed\n");
    expect(out).toContain("actions held  credentials: the service answered 401\n");
    const { out: json } = await runInProcess("status", "--url", url, "--output", "json");
    expect(JSON.parse(json)).toMatchObject({
      status: { version: "1.2.3", remediation: remediationStatusView(status, 0, 0) },
      budget: { month: { calls: expect.any(Number) } },
      policies: [],
    });
  });

  test("nodes lists a node once if it is shifted to a later page while the pages are read", async () => {
    const [first] = JSON.parse(
      (await runInProcess("nodes", "--url", (await startFleetServer()).url, "--output", "json")).out,
    ).nodes;
    const idOf = (index: number) => `node_${String(index).padStart(4, "0")}`;
    const { url } = await startTestServer({
      nodes({ page = "1" }) {
        const from = page === "1" ? 0 : 999;
        const data = Array.from({ length: page === "1" ? 1_000 : 3 }, (_, index) => ({
          ...first,
          id: idOf(from + index),
        }));
        return stepsOf({ data, complete: true, pagination: { page: Number(page), limit: 1_000, total: 1_002 } });
      },
    });
    const { out } = await runInProcess("nodes", "--url", url, "--limit", "2000", "--output", "json");
    const ids = (JSON.parse(out).nodes as { id: string }[]).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: 1_002 }, (_, index) => idOf(index)));
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
