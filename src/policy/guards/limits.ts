import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { Safety } from "../../config/schema/safety.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";

/** The limits in nodes or actions, for a fleet of some size. */
export interface EffectiveLimits {
  /** More nodes than this unhealthy at once are a storm. */
  readonly maxUnhealthy: number;
  readonly maxDisrupted: number;
  /** More nodes than this firing within its time open the breaker. */
  readonly breaker: number;
  readonly maxInFlight: number;
  readonly maxActions: number;
}

/** The limits of a fleet of `nodes` nodes. */
export function effectiveLimits(safety: Safety, nodes: number): EffectiveLimits {
  return {
    maxUnhealthy: nodesOfShare(safety.maxUnhealthy.share, nodes),
    maxDisrupted: Math.min(safety.maxDisrupted.amount, nodesOfShare(safety.maxDisrupted.share, nodes)),
    breaker: Math.max(safety.breaker.amount, nodesOfShare(safety.breaker.share, nodes)),
    maxInFlight: safety.maxInFlight,
    maxActions: safety.maxActions.amount,
  };
}

/** A journal warms up within this, however long max_actions counts. */
const JOURNAL_WARMUP_MS: DurationMs = HOUR_MS;

/**
 * Returns when actions were sent that a new journal can't know of: a state folder that was lost, or moved, must not give
 * max_actions back at once. The limit counts as used up, evenly over its time. `beganAt`: null if the journal has all actions.
 */
export function assumedActionTimes(beganAt: EpochMs | null, { maxActions }: Safety, now: EpochMs): readonly EpochMs[] {
  const { amount, perMs } = maxActions;
  const spreadMs = Math.min(perMs, JOURNAL_WARMUP_MS);
  if (beganAt === null || now - beganAt >= spreadMs) return [];
  const freed = Math.floor((amount * Math.max(0, now - beganAt)) / spreadMs);
  return Array.from({ length: amount - freed }, (_, index) => {
    const freesAt = beganAt + (spreadMs * (freed + index + 1)) / amount;
    return freesAt - perMs;
  });
}

/** Returns how many nodes of a region or country must fail together to be one incident. */
export function incidentNodesMin({ correlated }: Safety, nodesOfPlace: number): number {
  return Math.max(INCIDENT_NODES_MIN, Math.min(correlated.nodes, nodesOfShare(correlated.share, nodesOfPlace)));
}

/** The limits by the names that they have in the configuration: values of the label `limit`. */
export function limitsByName(safety: Safety, nodes: number): Readonly<Record<string, number>> {
  const limits = effectiveLimits(safety, nodes);
  const per = (name: string, limit: Readonly<Record<FailureDomain, number | null>>) =>
    FAILURE_DOMAINS.flatMap((domain) =>
      limit[domain] === null ? [] : [[`${name}.${domain}`, limit[domain]] as const],
    );
  return Object.fromEntries([
    ["max_unhealthy", limits.maxUnhealthy],
    ["max_disrupted", limits.maxDisrupted],
    ...per("max_disrupted_per", safety.maxDisruptedPer),
    ...per("min_online_per", safety.minOnlinePer),
    ["max_in_flight", limits.maxInFlight],
    ["max_actions", limits.maxActions],
    ["breaker", limits.breaker],
  ]);
}

/** A single unhealthy node is not a correlated failure. */
const INCIDENT_NODES_MIN = 2;

/**
 * Returns a share in whole nodes, rounded down. A share above zero is at least one node: a small fleet must not be frozen by
 * its size.
 */
function nodesOfShare(share: Share, nodes: number): number {
  if (share <= 0) return 0;
  // What binary fractions lose of a whole number is given back: 5 % of 20 is 1.
  return Math.max(1, Math.floor(share * nodes + 1e-9));
}
