import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { Inventory } from "../../../src/inventory/inventory.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { ObservedFleet } from "../../../src/remediation/context.ts";
import { RuleEvaluator } from "../../../src/remediation/evaluation/rule-evaluator.ts";
import { PolicySet } from "../../../src/remediation/policy-set.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";
import { record } from "../../inventory/inventory-fixtures.ts";

/** More nodes than one slice evaluates. */
const NODES = Array.from({ length: 1_000 }, (_, index) => `node_${index}`);
const fresh = { freshMs: HOUR_MS };

test("an evaluation that a new snapshot interrupts is over the snapshot that it began with", async () => {
  const clock = createVirtualClock(START_MS);
  const { journal } = createMemoryStateStore();
  const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
  const observed = new ObservedFleet({ serviceTime: (at) => at });
  const policies = new PolicySet(remediationRules([rebootOffline()]), remediationState.records);
  // Time passes with each look at the clock, so that every slice is as short as possible.
  let looks = 0;
  const passing = { ...clock, monotonic: () => clock.monotonic() + 2 * looks++ };
  const evaluator = new RuleEvaluator(
    { clock: passing, observed, policies, remediationState },
    { recordChanges: () => [] },
  );
  let sequence = 0;
  /** Publishes a walk that shows these nodes, all of them offline. */
  const publish = (nodes: readonly string[]) => {
    const inventory = new Inventory("ratio");
    const at = clock.monotonic();
    for (const node of nodes) inventory.recordListed(record(node, { status: "offline" }), at);
    inventory.endWalk({ end: "exact", total: nodes.length, seen: nodes.length, rejected: 0, maxMissing: 0 }, at);
    sequence++;
    const snapshot = { sequence, at, fleet: inventory.currentFleet(), sessions: null, stats: null, hourly: null };
    observed.latest = { snapshot, plan: { nodes: fresh } as never };
  };
  publish(NODES);
  await evaluator.evaluate(new Set());
  expect(remediationState.records.timersOf("reboot-offline").size).toBe(NODES.length);
  await clock.advance(MINUTE_MS);
  publish(NODES);
  const evaluated = evaluator.evaluate(new Set());
  publish(["node_0"]);
  await evaluated;
  const timers = [...remediationState.records.timersOf("reboot-offline").values()];
  expect(timers.map(({ trueMs }) => trueMs)).toEqual(NODES.map(() => MINUTE_MS));
});
