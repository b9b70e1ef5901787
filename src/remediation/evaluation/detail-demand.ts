import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Threshold } from "../../model/policy/policy.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { thresholdsOf } from "../../policy/cel/thresholds.ts";
import { type Policy, policySources } from "../../policy/policy.ts";
import type { Timer, TimerDurations } from "../../policy/timer.ts";
import type { DecisionContext } from "../context.ts";

/** Returns the usage thresholds of the policies. */
export const thresholdsOfPolicies = (policies: readonly Policy[]): readonly Threshold[] =>
  policies.flatMap(({ match, when }) =>
    [match, when].flatMap((expression) => (expression === null ? [] : thresholdsOf(expression))),
  );

/**
 * Returns the nodes whose details policies wait for, each with the earliest time at which reading its detail is useful
 * (see {@link nextUsefulReadAt}).
 */
export function detailDeadlines(context: DecisionContext): ReadonlyMap<NodeId, MonotonicMs> {
  const deadlines = new Map<NodeId, MonotonicMs>();
  for (const policy of context.policies.all) {
    if (!policySources(policy).includes("details")) continue;
    const maxAgeMs = context.observed.maxAgeOf(policy.spec)("details");
    const roundMs = context.observed.latest?.plan.details?.pacedMs ?? 0;
    for (const [node, timer] of context.remediationState.records.timersOf(policy.spec.name)) {
      const slot = context.observed.slotOf(node);
      if (slot === null) continue;
      const observedAt = context.observed.fleet.detailedAt.at(slot);
      const at = nextUsefulReadAt(timer, policy.spec, { observedAt, maxAgeMs, roundMs });
      deadlines.set(node, Math.min(at, deadlines.get(node) ?? Number.POSITIVE_INFINITY));
    }
  }
  return deadlines;
}

/** Age of the node detail that a policy reads. */
export interface DetailFreshness {
  /** When it was observed, or NaN if never. */
  readonly observedAt: MonotonicMs;
  /** The policy's max_age for details. */
  readonly maxAgeMs: DurationMs;
  /** Planned duration of one round of reads of all details. */
  readonly roundMs: DurationMs;
}

/** A detail is read again after this share of its max_age, so that it does not become stale while the timer runs. */
const REREAD_AGE_SHARE = 0.75;
/** How often in one round a detail is read for a firing timer, and for a timer whose verdict is unknown. */
const FIRING_READS_PER_ROUND = 2;
const UNKNOWN_READS_PER_ROUND = 4;

/**
 * Returns the earliest time at which a read of the detail can change the timer (make a pending one fire, or clear a
 * firing one), or at which it is due so that the detail does not become stale. It is Infinity if the timer is inactive,
 * and -Infinity if the detail was not read by this process.
 */
export function nextUsefulReadAt(
  timer: Timer,
  durations: Pick<TimerDurations, "forMs" | "clearForMs">,
  detail: DetailFreshness,
): MonotonicMs {
  if (timer.state === "inactive") return Number.POSITIVE_INFINITY;
  if (timer.last === null || Number.isNaN(detail.observedAt)) return Number.NEGATIVE_INFINITY;
  return Math.min(completesAt(timer, durations, detail), detail.observedAt + REREAD_AGE_SHARE * detail.maxAgeMs);
}

function completesAt(
  { state, trueMs, clearMs, last }: Timer,
  { forMs, clearForMs }: Pick<TimerDurations, "forMs" | "clearForMs">,
  { observedAt, roundMs }: DetailFreshness,
): MonotonicMs {
  if (last === null || last.verdict === "unknown") return observedAt + roundMs / UNKNOWN_READS_PER_ROUND;
  if (last.verdict === "false") return last.at + clearForMs - clearMs;
  return state === "firing" ? observedAt + roundMs / FIRING_READS_PER_ROUND : last.at + forMs - trueMs;
}
