import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { Safety } from "../../config/schema/safety.ts";
import { FAILURE_DOMAINS, type PerFailureDomain } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import type { DomainCount } from "../fleet-counts.ts";

/** The limits by percentage, converted to nodes for a fleet of a given size. */
export type EffectiveLimits = ReturnType<typeof effectiveLimits>;

/** Returns the limits for a fleet of `nodes` nodes. */
export const effectiveLimits = (safety: Safety, nodes: number) => ({
  /** A storm begins if more nodes than this are unhealthy at once. */
  maxUnhealthy: nodesOfShare(safety.maxUnhealthy.share, nodes),
  maxDisrupted: Math.min(safety.maxDisrupted.amount, nodesOfShare(safety.maxDisrupted.share, nodes)),
  /** The breaker opens if more nodes than this fire within its period. */
  breaker: Math.max(safety.breaker.amount, nodesOfShare(safety.breaker.share, nodes)),
});

/** The assumed actions of a new journal expire within this time, even if the period of max_actions is longer. */
const JOURNAL_WARMUP_MS: DurationMs = HOUR_MS;

/**
 * Returns the times of actions that are assumed to have been sent before a new journal began, because losing the state
 * folder must not reset max_actions. The limit counts as used up and becomes available evenly. `beganAt` is null if the
 * journal has all actions.
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
export function incidentNodesMin({ correlated }: Safety, domainNodes: number): number {
  return Math.max(INCIDENT_NODES_MIN, Math.min(correlated.nodes, nodesOfShare(correlated.share, domainNodes)));
}

/**
 * Returns whether `nodes` nodes of a region or country are one incident if they were never observed healthy. Fewer of
 * them may have failed one by one, unless no node there is online. `count` is called only if needed.
 */
export function isIncidentAtFirst({ correlated }: Safety, nodes: number, count: () => DomainCount): boolean {
  if (nodes < INCIDENT_NODES_MIN) return false;
  const domain = count();
  return domain.online === 0 || (nodes >= correlated.nodes && nodes >= nodesOfShare(correlated.share, domain.nodes));
}

/** Returns the limits by their configuration keys, which are the values of the label `limit`. */
export function limitsByName(safety: Safety, nodes: number): Readonly<Record<string, number>> {
  const limits = effectiveLimits(safety, nodes);
  const per = (name: string, limit: PerFailureDomain) =>
    FAILURE_DOMAINS.flatMap((domain) => (limit[domain] === null ? [] : [[`${name}.${domain}`, limit[domain]]]));
  return Object.fromEntries([
    ["max_unhealthy", limits.maxUnhealthy],
    ["max_disrupted", limits.maxDisrupted],
    ...per("max_disrupted_per", safety.maxDisruptedPer),
    ...per("min_online_per", safety.minOnlinePer),
    ["max_in_flight", safety.maxInFlight],
    ["max_actions", safety.maxActions.amount],
    ["breaker", limits.breaker],
  ]);
}

/** Minimum number of nodes of an incident, since a single unhealthy node is not a correlated failure. */
const INCIDENT_NODES_MIN = 2;

/**
 * Returns a share in whole nodes, rounded down, but at least one if the share is not 0, so that a fleet is not held for
 * being small.
 */
function nodesOfShare(share: Share, nodes: number): number {
  if (share <= 0) return 0;
  // Compensates for rounding errors: 5% of 20 is 1.
  return Math.max(1, Math.floor(share * nodes + 1e-9));
}
