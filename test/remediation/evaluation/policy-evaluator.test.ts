import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import { Inventory } from "../../../src/inventory/inventory.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { silentLog } from "../../../src/platform/log.ts";
import type { ObservedChanges } from "../../../src/remediation/evaluation/fleet-health.ts";
import { PolicyEvaluator } from "../../../src/remediation/evaluation/policy-evaluator.ts";
import { ObservedFleet } from "../../../src/remediation/observed-fleet.ts";
import { PolicySet } from "../../../src/remediation/policy-set.ts";
import { findReplacedNodes } from "../../../src/remediation/replaced-nodes.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { detail, record } from "../../inventory/inventory-fixtures.ts";
import { buildFleet } from "../../metrics/snapshot-fixtures.ts";

/** More nodes than one slice evaluates. */
const NODES = Array.from({ length: 1_000 }, (_, index) => `node_${index}`);
const fresh = { freshMs: HOUR_MS };
const POLICY = "reboot-offline";

/** Starts an evaluator on a journal. With the journal of another one, this is a start after a crash. */
async function startEvaluator({ journal } = createMemoryStateStore(), changed: Partial<PolicySpec> = {}) {
  const clock = createVirtualClock(START_MS);
  const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
  const client = { serviceTime: (at: number) => at };
  const observed = new ObservedFleet(client);
  const policies = new PolicySet(remediationConfig([rebootOffline(changed)]), remediationState.records);
  // Time passes with each reading of the clock, so that every slice is as short as possible.
  let readings = 0;
  let failingReading = Number.POSITIVE_INFINITY;
  const monotonic = () => {
    if (readings === failingReading) throw new Error("interrupted");
    return clock.monotonic() + 2 * readings++;
  };
  const passing = { ...clock, monotonic };
  const fleetHealth = { recordChanges: (_changes: ObservedChanges): readonly [] => [] };
  const warnings: Readonly<Record<string, unknown>>[] = [];
  const log = { ...silentLog, warn: (fields: object, message: string) => void warnings.push({ ...fields, message }) };
  const evaluator = new PolicyEvaluator({ clock: passing, log, observed, policies, remediationState }, fleetHealth);
  let sequence = 0;
  function publishFleet(fleet: Fleet): void {
    sequence++;
    const snapshot = { sequence, at: clock.monotonic(), fleet, sessions: null, stats: null, hourly: null };
    observed.latest = { snapshot, plan: { nodes: fresh } as never };
  }
  return {
    clock,
    evaluator,
    fleetHealth,
    warnings,
    timers: () => remediationState.records.timersOf(POLICY),
    remediationState,
    findReplaced: () =>
      runAtOnce(findReplacedNodes({ client, observed, remediationState }, { reportProblem: () => {} })),
    /** Makes the evaluation fail after this many readings of the clock. */
    failAfter: (count: number) => {
      failingReading = readings + count;
    },
    /** Publishes a walk that shows these nodes, all of them offline, and their `created_at` unless it is null. */
    publish(nodes: readonly string[], createdAtMs: number | null = null) {
      const inventory = new Inventory("ratio");
      const at = clock.monotonic();
      for (const node of nodes) {
        inventory.recordListed(record(node, { status: "offline" }), at);
        if (createdAtMs !== null)
          inventory.recordDetail(detail(node, null, { status: "offline", createdAtMs }), at, START_MS);
      }
      inventory.endWalk(
        { end: "exact", total: nodes.length, seen: nodes.length, rejected: 0, maxMissing: 0, observedFrom: 0 },
        at,
      );
      publishFleet(inventory.currentFleet());
    },
    publishFleet,
  };
}

test("an evaluation that a new snapshot interrupts is over the snapshot that it began with", async () => {
  const { clock, evaluator, publish, timers } = await startEvaluator();
  publish(NODES);
  await evaluator.evaluate(new Set());
  expect(timers().size).toBe(NODES.length);
  await clock.advance(MINUTE_MS);
  publish(NODES);
  const evaluated = evaluator.evaluate(new Set());
  publish(["node_0"]);
  await evaluated;
  expect([...timers().values()].map(({ trueMs }) => trueMs)).toEqual(NODES.map(() => MINUTE_MS));
});

test("after a crash, a node that got the id of another during an evaluation does not continue its timer", async () => {
  const store = createMemoryStateStore();
  const { clock, evaluator, publish, timers } = await startEvaluator(store);
  publish(NODES, 0);
  await evaluator.evaluate(new Set());
  await clock.advance(6 * MINUTE_MS);
  publish(NODES, 0);
  const evaluated = evaluator.evaluate(new Set());
  publish(NODES, MINUTE_MS);
  await evaluated;
  expect([...timers().values()].every(({ state }) => state === "firing")).toBe(true);
  const restarted = await startEvaluator(store);
  restarted.publish(NODES, MINUTE_MS);
  const replaced = restarted.findReplaced();
  expect(replaced.size).toBe(NODES.length);
  await restarted.evaluator.evaluate(replaced);
  expect([...restarted.timers().values()].filter(({ state }) => state !== "pending")).toEqual([]);
});

test("nodes that fired are counted later if counting them fails", async () => {
  const { clock, evaluator, fleetHealth, publish } = await startEvaluator(undefined, { forMs: 0 });
  const counted: (readonly string[])[] = [];
  fleetHealth.recordChanges = ({ firing }) => {
    if (counted.push(firing.filter(({ policy }) => policy === POLICY).map(({ node }) => node)) === 1)
      throw new Error("they can't be counted");
    return [];
  };
  publish(NODES);
  await expect(evaluator.evaluate(new Set())).rejects.toThrow("can't be counted");
  for (let walk = 0; walk < 2; walk++) {
    await clock.advance(MINUTE_MS);
    publish(NODES);
    await evaluator.evaluate(new Set());
  }
  expect(counted).toEqual([NODES, NODES, []]);
});

test("after an evaluation that failed, the next one evaluates the nodes that it did not reach", async () => {
  const { evaluator, failAfter, publish, timers } = await startEvaluator();
  publish(NODES);
  failAfter(4);
  await expect(evaluator.evaluate(new Set())).rejects.toThrow("interrupted");
  expect(timers().size).toBeLessThan(NODES.length);
  failAfter(Number.POSITIVE_INFINITY);
  await evaluator.evaluate(new Set());
  expect(timers().size).toBe(NODES.length);
});

test("timers are reset in slices when fleet data is not trusted", async () => {
  const { evaluator, publish, timers } = await startEvaluator();
  publish(NODES);
  await evaluator.evaluate(new Set());
  const marked = evaluator.markUntrusted();
  // The first slice has ended.
  expect(timers().size).toBeGreaterThan(0);
  expect(timers().size).toBeLessThan(NODES.length);
  await marked;
  expect(timers().size).toBe(0);
});

test("an id that got another node is found again until the state of the first one was dropped", async () => {
  const { findReplaced, publish, remediationState } = await startEvaluator();
  const replaced = () => [...findReplaced()];
  publish(["node_0"], 0);
  expect(replaced()).toEqual([]);
  publish(["node_0"], MINUTE_MS);
  expect(replaced()).toEqual(["node_0"]);
  expect(replaced()).toEqual(["node_0"]);
  remediationState.identities.replaced = new Set();
  expect(replaced()).toEqual([]);
});

test("nodes whose condition is unknown are counted until it is known or they are gone", async () => {
  const { clock, evaluator, publishFleet } = await startEvaluator();
  const counts = [];
  for (const statuses of [
    ["unknown", "unknown", "online"],
    ["unknown", "offline", "unknown"],
    [null, "unknown", "online"],
    ["online", "online", null],
  ] as const) {
    await clock.advance(MINUTE_MS);
    const at = clock.monotonic();
    const nodes = statuses.map((status, slot) =>
      status === null ? null : { id: `node_${slot}`, status, listedAt: at },
    );
    publishFleet(buildFleet(nodes, at));
    await evaluator.evaluate(new Set());
    counts.push(evaluator.unknownNodes(POLICY));
  }
  expect(counts).toEqual([2, 2, 1, 0]);
});

test.each([
  ["all nodes without a match", null, [2, 2], 0],
  ["the nodes of a region", 'node.region == "eu-west"', [1, 2], 0],
  [
    "no node if the match names a region that does not exist, and the log says so once",
    'node.region == "eu-wst"',
    [0, 0],
    1,
  ],
  ["no node, without a warning, if the match can't be evaluated on a node", "node.cpu_usage > 0.5", [0, 0], 0],
] as const)("a policy matches %s", async (_, match, counts, warned) => {
  const { clock, evaluator, publishFleet, warnings } = await startEvaluator(undefined, { match });
  const matched = [];
  expect(evaluator.matchedNodes(POLICY)).toBeNull();
  for (const region of ["us-east", "eu-west"]) {
    await clock.advance(MINUTE_MS);
    const at = clock.monotonic();
    const node = (id: string, region: string) => ({ id, region, status: "online", listedAt: at }) as const;
    publishFleet(buildFleet([node("a", "eu-west"), node("b", region)], at));
    await evaluator.evaluate(new Set());
    matched.push(evaluator.matchedNodes(POLICY));
  }
  expect(matched).toEqual(counts.map((nodes) => ({ nodes, of: 2 })));
  expect(warnings).toEqual(
    Array.from({ length: warned }, () => ({ policy: POLICY, match, nodes: 2, message: "the policy matches no node" })),
  );
});

test.each([
  ["a node that was online before became unhealthy", ["a", "a"], ["a"]],
  ["a node that was online before an absence became unhealthy", ["a", null, "a"], ["a"]],
  ["a node that is unhealthy in the slot of an online one did not become so", ["a", "b"], []],
] as const)("%s", async (_, occupants, onsets) => {
  const { clock, evaluator, fleetHealth, publishFleet } = await startEvaluator();
  const found: string[] = [];
  fleetHealth.recordChanges = (changes) => {
    found.push(...changes.unhealthy.filter(({ wasHealthy }) => wasHealthy).map(({ node }) => node));
    return [];
  };
  for (const [index, id] of occupants.entries()) {
    const status = index === occupants.length - 1 ? "offline" : "online";
    const listedAt = clock.monotonic();
    publishFleet(buildFleet([id && { id, status, listedAt }, { id: "other", status: "online", listedAt }], listedAt));
    await evaluator.evaluate(new Set());
    await clock.advance(MINUTE_MS);
  }
  expect(found).toEqual(onsets);
});

test.each([
  ["every third record is of unknown status", 'node.status == "offline"', ["offline", "offline", "unknown"], 3],
  [
    "it alternates between two statuses that meet the condition",
    'node.status != "online"',
    ["offline", "rebooting"],
    8,
  ],
] as const)("a node counts its minutes under a condition although %s", async (_, when, statuses, minutes) => {
  const { clock, evaluator, publishFleet, timers } = await startEvaluator(undefined, { when });
  const inventory = new Inventory("ratio");
  for (let minute = 0; minute < 9; minute++) {
    inventory.recordListed(record("a", { status: statuses[minute % statuses.length]! }), clock.monotonic());
    const walk = { end: "exact", total: 1, seen: 1, rejected: 0, maxMissing: 0, observedFrom: 0 } as const;
    inventory.endWalk(walk, clock.monotonic());
    publishFleet(inventory.currentFleet());
    await evaluator.evaluate(new Set());
    await clock.advance(MINUTE_MS);
  }
  expect(timers().get("a")?.trueMs).toBe(minutes * MINUTE_MS);
});
