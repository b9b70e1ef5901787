import { expect, test } from "vitest";
import { SECOND_MS } from "../../../../src/base/duration.ts";
import { Inventory } from "../../../../src/inventory/inventory.ts";
import { createMemoryStateStore } from "../../../../src/journal/sqlite/store.ts";
import { silentLog } from "../../../../src/platform/log.ts";
import { INACTIVE } from "../../../../src/policy/timer.ts";
import { IncidentTracker } from "../../../../src/remediation/evaluation/incidents.ts";
import { ObservedFleet } from "../../../../src/remediation/observed-fleet.ts";
import { PolicySet } from "../../../../src/remediation/policy-set.ts";
import { openRemediationState } from "../../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../../src/simulator/clock.ts";
import { START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { record } from "../../../inventory/inventory-fixtures.ts";

const NODES = Array.from({ length: 100 }, (_, index) => `node_${index}`);

test("a region whose nodes are found down one after the other is journaled with each node once", async () => {
  const clock = createVirtualClock(START_MS);
  const { journal } = createMemoryStateStore();
  const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
  const config = remediationConfig([rebootOffline()]);
  const observed = new ObservedFleet({ serviceTime: (at) => at });
  const inventory = new Inventory("ratio");
  for (const node of NODES) inventory.recordListed(record(node, { status: "offline" }), clock.monotonic());
  const data = { fleet: inventory.currentFleet(), sessions: null, stats: null, hourly: null };
  const plan = { nodes: { pacedMs: 60 * SECOND_MS, freshMs: 180 * SECOND_MS } };
  observed.latest = { snapshot: { sequence: 1, at: clock.monotonic(), ...data }, plan: plan as never };
  const policies = new PolicySet(config, remediationState.records);
  const acting = policies.all.map((policy) => policies.activate(policy));
  const tracker = new IncidentTracker({ observed, remediationState, config } as never);
  for (const node of NODES) {
    const timer = { ...INACTIVE, state: "pending", since: remediationState.now() } as const;
    remediationState.records.setTimer("reboot-offline", node, timer);
    tracker.add([{ node, policy: "reboot-offline", wasHealthy: false }], acting);
    await clock.advance(SECOND_MS);
  }
  expect(tracker.current(false)).toMatchObject([{ nodes: new Set(NODES) }]);
  expect(tracker.row().onsetGroups.flatMap(({ nodes }) => nodes)).toHaveLength(NODES.length);
});
