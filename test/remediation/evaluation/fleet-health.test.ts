import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { Inventory } from "../../../src/inventory/inventory.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { FleetHealth, STORM_FACT } from "../../../src/remediation/evaluation/fleet-health.ts";
import { ObservedFleet } from "../../../src/remediation/observed-fleet.ts";
import { PolicySet } from "../../../src/remediation/policy-set.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";
import { record } from "../../inventory/inventory-fixtures.ts";

const NODES = Array.from({ length: 10 }, (_, index) => `node_${index}`);

test("a breaker that opens while the reset of a policy is journaled stays open", async () => {
  const clock = createVirtualClock(START_MS);
  const { journal } = createMemoryStateStore();
  const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
  const breaker = { share: 0.05, amount: 5, withinMs: HOUR_MS };
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, breaker });
  const observed = new ObservedFleet({ serviceTime: (at) => at });
  const inventory = new Inventory("ratio");
  for (const node of NODES) inventory.recordListed(record(node, { status: "offline" }), clock.monotonic());
  const data = { fleet: inventory.currentFleet(), sessions: null, stats: null, hourly: null };
  observed.latest = { snapshot: { sequence: 1, at: clock.monotonic(), ...data }, plan: {} as never };
  const policies = new PolicySet(config, remediationState.records);
  const health = new FleetHealth({ observed, policies, remediationState, config, clock } as never);
  health.recordChanges({ firing: [], unhealthy: [] });

  const reset = health.resetBreaker(["reboot-offline"]);
  expect(await remediationState.commit(() => reset.changes)).toBe(true);
  health.recordChanges({ firing: NODES.map((node) => ({ node, policy: "reboot-offline" })), unhealthy: [] });
  expect(health.state(false).breaker.open).toMatchObject({ nodes: NODES.length });
  reset.apply();
  expect(health.state(false).breaker.open).toMatchObject({ nodes: NODES.length });
});

test("the cooldown of a storm that was active when the process stopped starts over", async () => {
  const clock = createVirtualClock(START_MS);
  const { journal } = createMemoryStateStore();
  const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
  const row = { since: START_MS - HOUR_MS, until: START_MS + MINUTE_MS, isActive: true };
  remediationState.record([{ kind: "fact", key: STORM_FACT, value: JSON.stringify(row) }]);
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, stormCooldownMs: HOUR_MS });
  const health = new FleetHealth({ remediationState, config, clock } as never);
  expect(health.state(false).storm?.until).toBe(remediationState.now() + HOUR_MS);
});

test.each([true, false])(
  "the cooldown of a storm keeps its duration if the journal's clock is corrected (active: %s)",
  async (isActive) => {
    const clock = createVirtualClock(START_MS);
    const { journal } = createMemoryStateStore();
    const remediationState = await openRemediationState({ journal, clock, log: silentLog, lostReason: null });
    const row = { since: START_MS - HOUR_MS, until: START_MS + HOUR_MS, isActive };
    remediationState.record([{ kind: "fact", key: STORM_FACT, value: JSON.stringify(row) }]);
    const config = remediationConfig([rebootOffline()], { ...withoutLimits, stormCooldownMs: HOUR_MS });
    const health = new FleetHealth({ remediationState, config, clock } as never);
    health.followClock({ byMs: 3 * HOUR_MS, behindSince: START_MS, openedAt: START_MS });
    expect(health.state(false).storm?.until).toBe(START_MS + 4 * HOUR_MS);
  },
);
