import { expect, test } from "vitest";
import type { ApiClient } from "../../../src/api-client/client.ts";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createCollectedState } from "../../../src/collectors/collected-state.ts";
import type { CollectionSettings } from "../../../src/collectors/collector-manager.ts";
import { runDetailCollector } from "../../../src/collectors/detail-collector.ts";
import { collectNodes } from "../../../src/collectors/list-collectors.ts";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Lane } from "../../../src/rate-limit/limits.ts";
import type { CollectorPlan } from "../../../src/scheduling/planner.ts";
import { createClientSetup } from "../../api-client/client-fixture.ts";
import { listsOnlySettings, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { createRecordingLog, everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import { remediationConfig, steps } from "../../harness/policies.ts";

const NODES = 20;

/** Starts reading the details of a listed fleet; records lane and time of each read. */
async function reading(boundBy: CollectorPlan["boundBy"], intervalMs: number) {
  const { clock, client } = createClientSetup();
  const log = createRecordingLog();
  const metrics = createDaemonMetrics({ process: false });
  const facts = { read: () => null, write() {} };
  const collected = createCollectedState(everyMinuteSettings, facts, { clock, log, metrics });
  const { inventory } = collected;
  const stop = new AbortController();
  const walk = collectNodes({ settings: everyMinuteSettings, collected, client, clock, metrics }, stop.signal);
  await clock.advance(MINUTE_MS);
  await walk;
  const reads: { id: string; lane: Lane; at: number }[] = [];
  const watched: ApiClient = {
    ...client,
    get(call, lane, signal) {
      reads.push({ id: call.path.slice(call.path.lastIndexOf("/") + 1), lane, at: clock.monotonic() });
      return client.get(call, lane, signal);
    },
  };
  const planned: CollectorPlan = {
    age: { medianMs: intervalMs / 2, worstMs: intervalMs },
    requestedMs: intervalMs,
    intervalMs,
    pacedMs: intervalMs,
    freshMs: 3 * intervalMs,
    slowdown: 1,
    boundBy,
    callsPerMinute: (NODES * MINUTE_MS) / intervalMs,
  };
  const deps = { settings: everyMinuteSettings, collected, client: watched, clock, log, metrics };
  const ended = runDetailCollector({ ...deps, plan: () => planned, onRead: () => {} }, stop.signal);
  const end = async () => {
    stop.abort();
    await clock.advance(MINUTE_MS);
    await ended;
  };
  return { clock, inventory, reads, end };
}

test("a suspect is read once in the lane of suspects, other nodes in turn in that of details", async () => {
  const { clock, inventory, reads, end } = await reading("node_management", 20 * MINUTE_MS);
  await clock.advance(25 * MINUTE_MS);
  const wanted = reads[3]!.id;
  inventory.setDetailDeadlines(new Map([[wanted, clock.monotonic()]]));
  const before = reads.length;
  await clock.advance(15 * MINUTE_MS);
  const later = reads.slice(before);
  expect(later.filter(({ lane }) => lane === "suspect").map(({ id }) => id)).toEqual([wanted]);
  expect(later.filter(({ id }) => id === wanted)).toHaveLength(1);
  expect(new Set(later.map(({ lane }) => lane))).toEqual(new Set(["suspect", "detail"]));
  await end();
});

test("suspects are read instead of others if a limit binds, and in addition otherwise", async () => {
  const readsIn = async (boundBy: CollectorPlan["boundBy"]) => {
    const { clock, inventory, reads, end } = await reading(boundBy, 20 * MINUTE_MS);
    await clock.advance(30 * MINUTE_MS);
    const before = reads.length;
    for (let minute = 0; minute < 60; minute++) {
      inventory.setDetailDeadlines(new Map(reads.slice(0, NODES).map(({ id }) => [id, clock.monotonic()])));
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

const details: Partial<CollectionSettings> = {
  schedules: {
    ...listsOnlySettings.schedules!,
    nodes: everyMinuteSettings.schedules.nodes,
    details: { kind: "every", intervalMs: 1.5 * HOUR_MS },
  },
};

/** A node whose disk fills up is rebooted after half an hour, and details are read every one and a half hours. */
const fullDisk = (when: string) =>
  remediationConfig([
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

test("a detail that a policy waits for is read when `for` has passed, not a round later", async () => {
  const context = await startQuietNetwork({
    config: fullDisk("node.disk_usage > 0.9"),
    settings: details,
    scenario: { nodes: 20 },
  });
  await context.advance(2 * HOUR_MS);
  const [node] = context.nodes();
  context.interventions.startFailure(node!, { failureMode: "full", remedy: "operator" });
  const slot = context.daemon.snapshots.last!.fleet.ids.indexOf(node!);
  const seen = () => context.daemon.snapshots.last!.fleet;
  await context.advanceUntil(() => seen().diskUsage.at(slot) > 0.9);
  const seenAt = seen().detailedAt.at(slot);
  await context.advance(29 * MINUTE_MS);
  expect(context.episodes()).toEqual([]);
  await context.advance(3 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ node, policy: "full-disk" }]);
  expect(seen().detailedAt.at(slot) - seenAt).toBeGreaterThanOrEqual(30 * MINUTE_MS);
  await context.stop();
});

/** How long the disk takes to fill up. */
const OVER_MS = 2.5 * HOUR_MS;

test("a disk that approaches a policy's threshold is read when it crosses it, although a round takes an hour", async () => {
  const context = await startQuietNetwork({
    config: fullDisk("node.disk_usage > 0.9"),
    settings: { schedules: { ...details.schedules!, details: { kind: "every", intervalMs: HOUR_MS } } },
    scenario: { nodes: 20 },
  });
  await context.advance(1.25 * HOUR_MS);
  const seen = () => context.daemon.snapshots.last!.fleet;
  // Its routine read comes three quarters of an hour after it crosses the threshold.
  const slot = 16;
  const healthy = seen().diskUsage.at(slot);
  const since = context.daemon.clock.now();
  context.interventions.setLoad(seen().ids[slot]!, {
    resource: "disk",
    since,
    overMs: OVER_MS,
    level: 1,
    until: Number.POSITIVE_INFINITY,
  });
  const crossesAt = since + (OVER_MS * (0.9 - healthy)) / (1 - healthy);
  await context.advance(crossesAt - since - MINUTE_MS);
  await context.advanceUntil(() => seen().diskUsage.at(slot) > 0.9);
  expect(context.daemon.clock.now() - crossesAt).toBeLessThan(3 * MINUTE_MS);
  await context.stop();
});
