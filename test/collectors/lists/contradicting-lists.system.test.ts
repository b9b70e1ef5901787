import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { removeNode } from "../../../src/simulator/fleet/fleet.ts";
import { createService } from "../../../src/simulator/http/service.ts";
import {
  listsOnlySettings,
  noFailureRates,
  type QuietNetwork,
  startQuietNetwork,
} from "../../harness/daemon/quiet-network.ts";
import {
  createPlanLimits,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
  type VirtualDaemonOptions,
} from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";

const NODES = 200;
/** How long the list hides nodes. Nodes that two complete walks miss would be gone by then. */
const HIDDEN_MS = 30 * MINUTE_MS;
type Listed = { readonly id: string; readonly status: string };

/**
 * Runs a daemon whose node list shows and counts only some of the nodes for half an hour, and then all of them. `detail`
 * is the body of every detail, or null for what the service answers.
 */
async function watchWhileListShows(
  shows: (node: Listed, index: number) => boolean,
  {
    detail = null,
    faults = [],
    settings = listsOnlySettings,
  }: { detail?: string | null; faults?: readonly Fault[]; settings?: VirtualDaemonOptions["settings"] } = {},
) {
  const clock = createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, nodes: NODES, sessions: 100, faults }, START_MS);
  const simulated = createSimulatedTransport(service, clock, { latencyMs: 50 });
  const beganAt = clock.monotonic();
  const transport: Transport = {
    ...simulated,
    async request(request, signal) {
      const sent = await simulated.request(request, signal);
      const isDetail = /^\/v1\/nodes\/[^/]+$/.test(request.path);
      if (sent.ok && isDetail && detail !== null)
        return { ok: true, value: { ...sent.value, body: Buffer.from(detail) } };
      const elapsed = clock.monotonic() - beganAt;
      const isHit = elapsed > 5 * MINUTE_MS && elapsed <= 5 * MINUTE_MS + HIDDEN_MS;
      if (!sent.ok || !isHit || !request.path.startsWith("/v1/nodes?") || sent.value.status !== 200) return sent;
      const body = JSON.parse(Buffer.from(sent.value.body).toString("utf8")) as { data: Listed[] };
      const data = body.data.filter(shows);
      const shown = { ...body, data, pagination: { page: 1, limit: 1_000, total: data.length } };
      return { ok: true, value: { ...sent.value, body: Buffer.from(JSON.stringify(shown)) } };
    },
  };
  const daemon = await startVirtualDaemon({ clock, service, transport, settings });
  let fewest = NODES;
  let fewestListed = NODES;
  await clock.advance(5 * MINUTE_MS);
  for (let minute = 0; minute < HIDDEN_MS / MINUTE_MS + 10; minute++) {
    await clock.advance(MINUTE_MS);
    const { count, lastWalk } = daemon.snapshots.last!.fleet;
    fewest = Math.min(fewest, count);
    fewestListed = Math.min(fewestListed, lastWalk!.seenNodes);
  }
  const { lastWalk } = daemon.snapshots.last!.fleet;
  const page = await daemon.metrics.render("text");
  await stopVirtualDaemon(daemon);
  return { fewest, fewestListed, lastWalk: lastWalk!, page };
}

test("nodes that the list hides by status stay, since lookups find them", async () => {
  const { fewest, fewestListed } = await watchWhileListShows(({ status }) => status === "online");
  expect(fewest).toBe(NODES);
  expect(fewestListed).toBeLessThan(NODES);
});

test("nodes that the list hides by status stay while 429s for the details of other nodes delay lookups", async () => {
  const fault = { kind: "status", status: 429, bare: true, retryAfter: "90" } as const;
  const { fewest, fewestListed } = await watchWhileListShows(({ status }) => status === "online", {
    faults: [{ afterMs: 0, forMs: HOUR_MS, match: "GET /v1/nodes/", share: 0.1, fault }],
    settings: {},
  });
  expect(fewest).toBe(NODES);
  expect(fewestListed).toBeLessThan(NODES);
});

test("a list that shows half of the fleet for half an hour removes no node, and is trusted once it is complete", async () => {
  const { fewest, lastWalk } = await watchWhileListShows((_, index) => index % 2 === 0);
  expect(fewest).toBe(NODES);
  expect(lastWalk).toMatchObject({ complete: true, seenNodes: NODES });
});

test.each([0.8, 0])(
  "a list that is empty for half an hour removes no node (min_inventory %f)",
  async (minInventory) => {
    const { fewest } = await watchWhileListShows(() => false, { settings: { ...listsOnlySettings, minInventory } });
    expect(fewest).toBe(NODES);
  },
);

test("unreadable details of lookups count for the node list, which made them", async () => {
  const { page } = await watchWhileListShows((_, index) => index > 0, { detail: '{"id":7}' });
  const rejected = page.match(/^proxywarden_records_rejected_total\{.*\} [1-9].*$/gm)!;
  expect(rejected.length).toBeGreaterThan(0);
  expect(rejected.filter((line) => !line.includes('collector="nodes"'))).toEqual([]);
});

test("nodes that one walk does not show stay while the service answers 404 for the details of all nodes", async () => {
  const scenario = { nodes: NODES, sessions: 100, rates: noFailureRates };
  const daemon = await startVirtualDaemon({ scenario });
  await daemon.clock.advance(20 * MINUTE_MS);
  const afterMs = daemon.clock.monotonic();
  daemon.service.setFaults([
    { afterMs, forMs: 4 * MINUTE_MS, fault: { kind: "bad_details", nodes: 1, answer: "not_found" } },
    {
      afterMs: afterMs + MINUTE_MS,
      forMs: MINUTE_MS,
      match: "GET /v1/nodes?",
      fault: { kind: "vanished", missing: 0.01 },
    },
  ]);
  let fewestListed = NODES;
  for (let minute = 0; minute < 6; minute++) {
    await daemon.clock.advance(MINUTE_MS);
    const { fleet } = daemon.snapshots.last!;
    expect(fleet.count).toBe(NODES);
    fewestListed = Math.min(fewestListed, fleet.lastWalk!.seenNodes);
  }
  expect(fewestListed).toBeLessThan(NODES);
  await stopVirtualDaemon(daemon);
});

describe("a service that lists too few nodes and answers 404 for the others", () => {
  const FEW_NODES = 100;
  const config = remediationConfig([rebootOffline()]);
  const listing = async (missing: number) => {
    const network = await startQuietNetwork({ config, scenario: { nodes: FEW_NODES } });
    network.setFault({ kind: "vanished", missing });
    await network.advance(HIDDEN_MS);
    return network;
  };
  const fleetOf = (network: QuietNetwork) => network.daemon.snapshots.last!.fleet;

  test.each([1, 0.6, 0.3])("loses none if it leaves out a share of %f, and names the command", async (missing) => {
    const network = await listing(missing);
    expect(fleetOf(network).count).toBe(FEW_NODES);
    const { trust } = network.controller().view.status();
    expect(trust.find(({ reason }) => reason === "inventory_shrunk")?.detail).toContain("run accept-inventory");
    network.setFault(null);
    await network.advance(2 * MINUTE_MS);
    expect(fleetOf(network).lastWalk).toMatchObject({ complete: true, seenNodes: FEW_NODES });
  });

  test("loses those that it leaves out if that is only a few", async () => {
    const network = await listing(0.1);
    expect(fleetOf(network).count).toBe(fleetOf(network).lastWalk!.seenNodes);
  });

  test("loses all of them within minutes once an operator accepts that", async () => {
    const network = await listing(1);
    expect(await network.commands().acceptInventory()).toMatchObject({ ok: true });
    await network.advance(5 * MINUTE_MS);
    expect(fleetOf(network).count).toBe(0);
  });
});

describe("a session list that is suddenly empty", () => {
  const SESSIONS = 500;
  const totalsOf = ({ snapshots }: VirtualDaemon) => {
    const { complete, counts, durations, nodes } = snapshots.last!.sessions!;
    const sum = (values: Iterable<number>) => [...values].reduce((total, each) => total + each, 0);
    return {
      complete,
      listed: sum(counts),
      ended: sum(durations.map(({ count }) => count)),
      bytes: sum(nodes.sentBytes),
    };
  };
  async function startSteadyDaemon() {
    const scenario = { nodes: 20, sessions: SESSIONS, rates: noFailureRates };
    const daemon = await startVirtualDaemon({ scenario, settings: { limits: createPlanLimits("enterprise") } });
    await daemon.clock.advance(10 * MINUTE_MS);
    return daemon;
  }
  const hideSessions = ({ service, clock }: VirtualDaemon, forMs: number) =>
    service.setFaults([
      { afterMs: clock.monotonic(), forMs, match: "GET /v1/sessions?", fault: { kind: "empty_list" } },
    ]);

  test("ends no session and loses few bytes if the statistics contradict it", async () => {
    const [daemon, healthy] = [await startSteadyDaemon(), await startSteadyDaemon()];
    hideSessions(daemon, 5 * MINUTE_MS);
    const before = totalsOf(daemon);
    for (let minute = 0; minute < 5; minute++) {
      await daemon.clock.advance(MINUTE_MS);
      expect(totalsOf(daemon)).toEqual({ ...before, complete: false, listed: 0 });
    }
    const page = await daemon.metrics.render("text");
    expect(page).toContain('proxywarden_collect_failures_total{collector="sessions",reason="incomplete"} 5');
    await daemon.clock.advance(25 * MINUTE_MS);
    await healthy.clock.advance(30 * MINUTE_MS);
    const [seen, all] = [totalsOf(daemon), totalsOf(healthy)];
    expect(seen.complete).toBe(true);
    expect(seen.ended).toBeLessThanOrEqual(all.ended);
    expect(seen.bytes).toBeGreaterThan(0.95 * all.bytes);
    await stopVirtualDaemon(daemon);
    await stopVirtualDaemon(healthy);
  });

  test("is trusted after ten walks", async () => {
    const daemon = await startSteadyDaemon();
    hideSessions(daemon, HOUR_MS);
    await daemon.clock.advance(10 * MINUTE_MS);
    expect(totalsOf(daemon).complete).toBe(false);
    await daemon.clock.advance(MINUTE_MS);
    expect(totalsOf(daemon)).toMatchObject({ complete: true, listed: 0 });
    await stopVirtualDaemon(daemon);
  });
});

test.each([404, 410, 400] as const)(
  "nodes that leave together are removed within twelve minutes if the service answers %d for unknown nodes",
  async (unknownNodeStatus) => {
    const service = { ...defaultScenario.service, unknownNodeStatus };
    const network = await startQuietNetwork({ config: remediationConfig([]), scenario: { nodes: 200, service } });
    const { fleet, now } = network.daemon.service.network;
    for (const node of fleet.nodes.slice(0, 20)) removeNode(fleet, node, now, Number.POSITIVE_INFINITY);
    await network.advance(12 * MINUTE_MS);
    const { count, lastWalk } = network.daemon.snapshots.last!.fleet;
    expect(count).toBe(180);
    expect(lastWalk).toMatchObject({ complete: true, missing: 0 });
  },
);
