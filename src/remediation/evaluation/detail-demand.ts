import type { NodeId } from "../../model/node.ts";
import type { Threshold } from "../../model/policy/policy.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { thresholdsOf } from "../../policy/cel/thresholds.ts";
import { type Policy, policySources } from "../../policy/policy.ts";
import { nextUsefulReadAt } from "../../policy/timers/next-observation.ts";
import type { RemediationContext } from "../context.ts";

/** Returns the usage thresholds of the policies. */
export const thresholdsOfPolicies = (policies: readonly Policy[]): readonly Threshold[] =>
  policies.flatMap(({ match, when }) =>
    [match, when].flatMap((expression) => (expression === null ? [] : thresholdsOf(expression))),
  );

/**
 * Returns the nodes whose details policies wait for, each with the earliest time at which reading its detail can change
 * a timer. A read that verifies an action postpones that time.
 */
export function detailDeadlines(
  context: Pick<RemediationContext, "observed" | "policies" | "remediationState">,
): ReadonlyMap<NodeId, MonotonicMs> {
  const deadlines = new Map<NodeId, MonotonicMs>();
  for (const policy of context.policies.all) {
    if (!policySources(policy).includes("details")) continue;
    const maxAgeMs = context.observed.maxAgeOf(policy.rule)("details");
    const roundMs = context.observed.latest?.plan.details?.pacedMs ?? 0;
    for (const [node, timer] of context.remediationState.records.timersOf(policy.rule.name)) {
      const slot = context.observed.slotOf(node);
      if (slot === null) continue;
      const observedAt = context.observed.fleet.detailedAt[slot]!;
      const at = nextUsefulReadAt(timer, policy.rule, { observedAt, maxAgeMs, roundMs });
      deadlines.set(node, Math.min(at, deadlines.get(node) ?? Number.POSITIVE_INFINITY));
    }
  }
  return deadlines;
}
