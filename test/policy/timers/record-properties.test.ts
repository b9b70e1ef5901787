import fc from "fast-check";
import { expect, test } from "vitest";
import { SECOND_MS } from "../../../src/base/duration.ts";
import { Inventory } from "../../../src/inventory/inventory.ts";
import { NODE_STATUSES, type NodeStatus } from "../../../src/model/node.ts";
import { INACTIVE, type Observation, observeCondition, type TimerDurations } from "../../../src/policy/timer.ts";
import { record } from "../../inventory/inventory-fixtures.ts";

const durations: TimerDurations = { forMs: 25 * SECOND_MS, clearForMs: 20 * SECOND_MS, gapMsMax: 30 * SECOND_MS };

/**
 * Records that arrive `afterS` seconds after the previous one. In a run they may either have been observed `delayS`
 * seconds before, or have an earlier last_seen.
 */
const records = fc.array(
  fc.record({
    status: fc.constantFrom<NodeStatus>(...Array(12).fill("offline"), "rebooting", "rebooting", "unknown", "online"),
    afterS: fc.integer({ min: 0, max: 10 }),
    delayS: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 5, 15),
    hasOldLastSeen: fc.constantFrom(false, false, false, false, false, true),
    isEvaluated: fc.constantFrom(true, true, false),
  }),
  { minLength: 40, maxLength: 60 },
);

/** The verdict of `node.status != "online"`. */
const verdictOf = (status: NodeStatus): Observation["verdict"] =>
  status === "unknown" ? "unknown" : status === "online" ? "false" : "true";

test("a timer fires only if no record within `for` stated a status that does not meet the condition", () => {
  let fired = 0;
  fc.assert(
    fc.property(records, fc.boolean(), (all, areDelayed) => {
      const inventory = new Inventory("ratio");
      let timer = INACTIVE;
      let now = 1_000 * SECOND_MS;
      let lastHealthyAt = Number.NEGATIVE_INFINITY;
      for (const { status, afterS, delayS, hasOldLastSeen, isEvaluated } of all) {
        // No two records are observed at the same time.
        now += afterS * SECOND_MS + 1;
        const observedAt = areDelayed ? now - delayS * SECOND_MS : now;
        const lastSeenMs = hasOldLastSeen && !areDelayed ? 0 : observedAt;
        inventory.recordListed(record("a", { status, lastSeenMs }), observedAt);
        if (status === "online") lastHealthyAt = Math.max(lastHealthyAt, observedAt);
        if (!isEvaluated) continue;
        const fleet = inventory.currentFleet();
        const [at, contradictedAt] = [fleet.listedAt.at(0), fleet.otherStatusAt.at(0)];
        const before = timer;
        const verdict = verdictOf(NODE_STATUSES[fleet.status[0]!]!);
        timer = observeCondition(timer, { verdict, at, newest: at, contradictedAt, now }, durations);
        if (timer.state !== "firing" || before.state === "firing") continue;
        fired++;
        expect(at - lastHealthyAt).toBeGreaterThanOrEqual(durations.forMs);
      }
    }),
    { numRuns: 1_000 },
  );
  expect(fired).toBeGreaterThan(100);
});
