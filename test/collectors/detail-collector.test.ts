import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { Lane } from "../../src/rate-limit/limits.ts";
import type { CollectorPlan } from "../../src/scheduling/planner.ts";
import { createAccount } from "../../src/collectors/collector-health.ts";
import { readDetails } from "../../src/collectors/detail-collector.ts";
import { createInventory } from "../../src/inventory/inventory.ts";
import { collectNodes } from "../../src/collectors/list-collectors.ts";
import type { WatchSettings } from "../../src/collectors/collector-manager.ts";
import { createWardenMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { ServiceClient } from "../../src/api-client/client.ts";
import { newPageHabits } from "../../src/api-client/pagination/pages.ts";
import { setUp } from "../api-client/client-fixture.ts";
import { createKeptLog, minuteSettings } from "../harness/virtual-daemon.ts";
import { rulesOf, steps } from "../harness/policies.ts";
import { listsOnly, startWard } from "../harness/quiet-network.ts";

const NODES = 20;

/** Details of a listed fleet being read, and the lane and the moment of each read. */
async function reading(boundBy: CollectorPlan["boundBy"], intervalMs: number) {
  const { clock, client } = setUp();
  const inventory = createInventory("ratio");
  const log = createKeptLog();
  const metrics = createWardenMetrics({ process: false });
  const account = createAccount("details", { clock, log, metrics });
  const stop = new AbortController();
  const walk = collectNodes(
    { client, clock, account, habits: newPageHabits(1_000), metrics, inFlightMax: 3, spacingMs: 0 },
    inventory,
    0.02,
    stop.signal,
  );
  await clock.advance(MINUTE_MS);
  await walk;
  const reads: { id: string; lane: Lane; at: number }[] = [];
  const watched: ServiceClient = {
    ...client,
    get(call, lane, signal) {
      reads.push({ id: call.path.slice(call.path.lastIndexOf("/") + 1), lane, at: clock.monotonic() });
      return client.get(call, lane, signal);
    },
  };
  const planned: CollectorPlan = {
    age: { medianMs: intervalMs / 2, worstMs: intervalMs },
    wishMs: intervalMs,
    intervalMs,
    pacedMs: intervalMs,
    freshMs: 3 * intervalMs,
    stretch: 1,
    boundBy,
    callsPerMinute: (NODES * MINUTE_MS) / intervalMs,
  };
  const plan = () => planned;
  const parts = { client: watched, clock, log, metrics, account, inventory, inFlightMax: 40, plan, onRead: () => {} };
  const ended = readDetails(parts, stop.signal);
  const end = async () => {
    stop.abort();
    await clock.advance(MINUTE_MS);
    await ended;
  };
  return { clock, inventory, reads, end };
}

test("a suspect is read in the lane of suspects, once; everybody else in that of details, in turn", async () => {
  const { clock, inventory, reads, end } = await reading("node_management", 20 * MINUTE_MS);
  await clock.advance(25 * MINUTE_MS);
  const wanted = reads[3]!.id;
  inventory.awaitDetails(new Map([[wanted, clock.monotonic()]]));
  const before = reads.length;
  await clock.advance(15 * MINUTE_MS);
  const later = reads.slice(before);
  expect(later.filter(({ lane }) => lane === "suspect").map(({ id }) => id)).toEqual([wanted]);
  expect(later.filter(({ id }) => id === wanted)).toHaveLength(1);
  expect(new Set(later.map(({ lane }) => lane))).toEqual(new Set(["suspect", "detail"]));
  await end();
});

test("suspects are read in place of others where a limit binds, and beside them where none does", async () => {
  const readsIn = async (boundBy: CollectorPlan["boundBy"]) => {
    const { clock, inventory, reads, end } = await reading(boundBy, 20 * MINUTE_MS);
    await clock.advance(30 * MINUTE_MS);
    const before = reads.length;
    for (let minute = 0; minute < 60; minute++) {
      inventory.awaitDetails(new Map(reads.slice(0, NODES).map(({ id }) => [id, clock.monotonic()])));
      await clock.advance(MINUTE_MS);
    }
    const hour = reads.slice(before);
    await end();
    return { all: hour.length, suspects: hour.filter(({ lane }) => lane === "suspect").length };
  };
  const bound = await readsIn("month");
  expect(bound.all).toBeLessThanOrEqual(61);
  expect(bound.suspects).toBeGreaterThanOrEqual(9);
  const free = await readsIn(null);
  expect(free.all - free.suspects).toBeGreaterThanOrEqual(59);
  expect(free.suspects).toBeGreaterThanOrEqual(11);
});

const details: Partial<WatchSettings> = {
  cadences: {
    ...listsOnly.cadences!,
    nodes: minuteSettings.cadences.nodes,
    details: { kind: "every", intervalMs: 3 * HOUR_MS },
  },
};

/** A disk that fills is rebooted after half an hour, and details are read every three hours. */
const fullDisk = (when: string) =>
  rulesOf([
    {
      name: "full-disk",
      mode: "dry_run",
      match: null,
      when,
      forMs: 30 * MINUTE_MS,
      clearForMs: 30 * MINUTE_MS,
      maxAgeMs: null,
      steps: [steps.reboot],
      retry: { episodes: 1, everyMs: HOUR_MS, forgetAfterMs: HOUR_MS },
      windows: [],
      blockedBy: [],
    },
  ]);

test("a policy that waits on a detail has it when `for` is over, and not a round later", async () => {
  const ward = await startWard({
    rules: fullDisk("node.disk_usage > 0.9"),
    settings: details,
    scenario: { nodes: 60 },
  });
  await ward.pass(4 * HOUR_MS);
  const [node] = ward.nodes();
  ward.people.fallIll(node!, { ailment: "full", cure: "person" });
  const slot = ward.daemon.snapshots.last!.fleet.ids.indexOf(node!);
  const seen = () => ward.daemon.snapshots.last!.fleet;
  await ward.passUntil(() => seen().diskUsage[slot]! > 0.9);
  const seenAt = seen().detailedAt[slot]!;
  await ward.pass(29 * MINUTE_MS);
  expect(ward.episodes()).toEqual([]);
  await ward.pass(3 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ node, policy: "full-disk" }]);
  expect(seen().detailedAt[slot]! - seenAt).toBeGreaterThanOrEqual(30 * MINUTE_MS);
  await ward.stop();
});

test("a disk that creeps towards a policy's line is read as it crosses it, though a round takes an hour", async () => {
  const ward = await startWard({
    rules: fullDisk("node.disk_usage > 0.9"),
    settings: { cadences: { ...details.cadences!, details: { kind: "every", intervalMs: HOUR_MS } } },
    scenario: { nodes: 30 },
  });
  await ward.pass(2 * HOUR_MS);
  const [node] = ward.nodes();
  const slot = ward.daemon.snapshots.last!.fleet.ids.indexOf(node!);
  const seen = () => ward.daemon.snapshots.last!.fleet;
  const healthy = seen().diskUsage[slot]!;
  const since = ward.daemon.clock.now();
  ward.people.strain(node!, {
    resource: "disk",
    since,
    overMs: 5 * HOUR_MS,
    level: 1,
    until: Number.POSITIVE_INFINITY,
  });
  const crossesAt = since + (5 * HOUR_MS * (0.9 - healthy)) / (1 - healthy);
  await ward.pass(crossesAt - since - MINUTE_MS);
  await ward.passUntil(() => seen().diskUsage[slot]! > 0.9);
  expect(ward.daemon.clock.now() - crossesAt).toBeLessThan(3 * MINUTE_MS);
  await ward.stop();
});
