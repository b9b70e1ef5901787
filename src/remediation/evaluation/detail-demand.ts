import type { NodeId } from "../../model/node.ts";
import type { Threshold } from "../../model/policy/threshold.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { nextLook } from "../../policy/timers/next-observation.ts";
import { type Policy, sourcesOf } from "../../policy/policy.ts";
import { thresholdsOf } from "../../policy/cel/thresholds.ts";
import { maxAgeOf, slotOf, type Ward } from "../context.ts";

/** The lines that policies draw through usages. */
export const thresholdsIn = (policies: readonly Policy[]): readonly Threshold[] =>
  policies.flatMap(({ match, when }) => [match, when].flatMap((each) => (each === null ? [] : thresholdsOf(each))));

/**
 * The nodes whose detail a policy waits for, and from when on a look at each brings its timer on. Whoever verifies an
 * action reads its node more often than that, which puts the next look off each time.
 */
export function awaitedDetails(ward: Ward): ReadonlyMap<NodeId, MonotonicMs> {
  const waits = new Map<NodeId, MonotonicMs>();
  for (const policy of ward.policies) {
    if (!sourcesOf(policy).includes("details")) continue;
    const maxAgeMs = maxAgeOf(ward, policy.rule)("details");
    const roundMs = ward.view?.plan.details?.pacedMs ?? 0;
    for (const [node, timer] of ward.books.casebook.timersOf(policy.rule.name)) {
      const slot = slotOf(ward, node);
      if (slot === null) continue;
      const observedAt = ward.view!.snapshot.fleet.detailedAt[slot]!;
      const at = nextLook(timer, policy.rule, { observedAt, maxAgeMs, roundMs });
      waits.set(node, Math.min(at, waits.get(node) ?? Number.POSITIVE_INFINITY));
    }
  }
  return waits;
}
