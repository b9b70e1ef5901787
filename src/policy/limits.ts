import type { Share } from "../base/percent.ts";
import { DOMAINS, type Domain, type Safety } from "../model/safety.ts";

/** What each limit comes to, in nodes or actions, for a fleet of some size. */
export interface NodeLimits {
  /** More nodes than this unhealthy at once are a storm. */
  readonly maxUnhealthy: number;
  readonly maxDisrupted: number;
  /** More nodes than this firing within its time open the breaker. */
  readonly breaker: number;
  readonly maxInFlight: number;
  readonly maxActions: number;
}

/** The limits of a fleet of `nodes` nodes. */
export function nodeLimits(safety: Safety, nodes: number): NodeLimits {
  return {
    maxUnhealthy: shareOf(safety.maxUnhealthy.share, nodes),
    maxDisrupted: Math.min(safety.maxDisrupted.amount, shareOf(safety.maxDisrupted.share, nodes)),
    breaker: Math.max(safety.breaker.amount, shareOf(safety.breaker.share, nodes)),
    maxInFlight: safety.maxInFlight,
    maxActions: safety.maxActions.amount,
  };
}

/** Nodes of one place that must go bad together to be one incident. */
export function incidentSize({ correlated }: Safety, nodesOfPlace: number): number {
  return Math.max(INCIDENT_NODES_MIN, Math.min(correlated.nodes, shareOf(correlated.share, nodesOfPlace)));
}

/** The limits by the names that they have in the configuration: values of the label `limit`. */
export function namedLimits(safety: Safety, nodes: number): Readonly<Record<string, number>> {
  const limits = nodeLimits(safety, nodes);
  const per = (name: string, limit: Readonly<Record<Domain, number | null>>) =>
    DOMAINS.flatMap((domain) => (limit[domain] === null ? [] : [[`${name}.${domain}`, limit[domain]] as const]));
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

/** One node gone bad is no company. */
const INCIDENT_NODES_MIN = 2;

/**
 * A share of a fleet or place in whole nodes, rounded down; but a share above zero is never nobody: a fleet of three
 * must not be frozen by its size.
 */
function shareOf(share: Share, nodes: number): number {
  if (share <= 0) return 0;
  // What binary fractions lose of a whole number is given back: 5 % of 20 is 1.
  return Math.max(1, Math.floor(share * nodes + 1e-9));
}
