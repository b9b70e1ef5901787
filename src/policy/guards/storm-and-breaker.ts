import { formatSecondsLeft } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { type EpochMs, formatTime } from "../../model/time.ts";
import { defineGuard } from "./guard.ts";

/** A node that began to fire. */
export interface FiringNode {
  readonly node: NodeId;
  readonly at: EpochMs;
}

/** The circuit breaker counts nodes that begin to fire. Once open, it stays open until an operator resets it. */
export interface Breaker {
  /** The last firing of each node within the period. */
  readonly firings: readonly FiringNode[];
  readonly open: { readonly openedAt: EpochMs; readonly nodes: number } | null;
  /** When an operator closed it last. Absent if never. */
  readonly resetAt?: EpochMs;
}

/** The initial state. */
export const CLOSED_BREAKER: Breaker = { firings: [], open: null };

/**
 * Counts nodes that began to fire at `now`. The breaker opens if there are more than `limit`, but only when a node
 * begins to fire. A limit that is temporarily low because not all nodes are listed yet does not open it.
 */
export function recordFirings(
  breaker: Breaker,
  nodes: readonly NodeId[],
  { now, withinMs, limit }: { readonly now: EpochMs; readonly withinMs: number; readonly limit: number },
): Breaker {
  const newlyFiring = new Set(nodes);
  const recentFirings = breaker.firings.filter(({ node, at }) => at > now - withinMs && !newlyFiring.has(node));
  if (newlyFiring.size === 0 && recentFirings.length === breaker.firings.length) return breaker;
  if (breaker.open !== null) return { ...breaker, firings: [] };
  const firings = [...recentFirings, ...[...newlyFiring].map((node) => ({ node, at: now }))];
  return newlyFiring.size > 0 && firings.length > limit
    ? { ...breaker, firings: [], open: { openedAt: now, nodes: firings.length } }
    : { ...breaker, firings, open: null };
}

/**
 * A storm is active while too many nodes are unhealthy. Its cooldown follows, and ends at `until`.
 */
export interface Storm {
  readonly since: EpochMs;
  readonly until: EpochMs;
  readonly isActive: boolean;
  /** The counts when it began. Absent in a journal of an earlier version. */
  readonly onset?: UnhealthyCounts;
}

/** Number of unhealthy nodes, of all nodes, and of nodes that may be unhealthy at once. */
export interface UnhealthyCounts {
  readonly unhealthy: number;
  readonly nodes: number;
  readonly limit: number;
}

/** Returns the storm as of `now`, or null if there is none and the cooldown is over. */
export function evaluateStorm(
  storm: Storm | null,
  counts: UnhealthyCounts,
  now: EpochMs,
  cooldownMs: number,
): Storm | null {
  if (counts.unhealthy > counts.limit) {
    // A new breach during the cooldown continues the same storm.
    return { ...(storm ?? { since: now, onset: counts }), until: now + cooldownMs, isActive: true };
  }
  if (storm === null) return null;
  // The cooldown may have been shortened since the storm.
  const until = Math.min(storm.until, now + cooldownMs);
  if (now >= until) return null;
  return storm.isActive || until !== storm.until ? { ...storm, until, isActive: false } : storm;
}

/** Holds every node while too many nodes are unhealthy at once, including nodes observed since the last evaluation. */
export const stormGuard = defineGuard({
  reasons: {
    storm: {
      counts: "nodes that are offline, of unknown status, firing, disrupted or lost",
      condition: "there are more than `safety.max_unhealthy`",
      ends: "automatically, once the number of unhealthy nodes has fallen back to the limit; then `storm_cooldown` holds",
      operatorAction: "find the common cause: network, service or upstream",
      policyWide: true,
      preventsEpisode: true,
    },
    storm_cooldown: {
      counts: "the time since the storm",
      condition: "it is shorter than `safety.storm_cooldown`",
      ends: "automatically, after `safety.storm_cooldown`",
      policyWide: true,
      alert: null,
    },
  },
  check: (_candidate, { storm, fleetCounts, limits, now }) => {
    if (fleetCounts.unhealthy > limits.maxUnhealthy) {
      const verb = fleetCounts.unhealthy === 1 ? "is" : "are";
      const detail = `${fleetCounts.unhealthy} of ${fleetCounts.nodes} nodes ${verb} unhealthy; the limit is ${limits.maxUnhealthy} (storm)`;
      return [{ reason: "storm", detail }];
    }
    if (storm === null) return [];
    return [
      {
        reason: "storm_cooldown",
        detail: `the storm is over; held for another ${formatSecondsLeft(storm.until - now)}`,
      },
    ];
  },
});

/** Holds every node while the circuit breaker is open. It stays open across restarts until an operator resets it. */
export const breakerGuard = defineGuard({
  reasons: {
    breaker: {
      counts: "nodes that began to fire, or were lost, within `safety.breaker.within`",
      condition: "there were more than `amount` or `percent` of `safety.breaker`, whichever is larger",
      ends: "with `reset-breaker`",
      operatorAction: "find out why so many nodes fired or were lost, then `reset-breaker`",
      alert: "ProxywardenBreakerOpen",
      policyWide: true,
    },
  },
  check: (_candidate, { breaker }) =>
    breaker.open === null
      ? []
      : [
          {
            reason: "breaker",
            detail: `it opened at ${formatTime(breaker.open.openedAt)} after ${breaker.open.nodes} nodes had fired or been lost; reset-breaker closes it`,
          },
        ],
});
