import type { NodeId } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";

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
 * A storm lasts while too many nodes are unhealthy (`blowing`), and for a cool-down after that, which ends at `until`.
 */
export interface Storm {
  readonly since: EpochMs;
  readonly until: EpochMs;
  readonly blowing: boolean;
  /** The counts when it began. Absent in a journal of an earlier version. */
  readonly onset?: UnhealthyCounts;
}

/** Number of unhealthy nodes, of all nodes, and of nodes that may be unhealthy at once. */
export interface UnhealthyCounts {
  readonly unhealthy: number;
  readonly nodes: number;
  readonly limit: number;
}

/** Returns the storm as of `now`, or null if there is none and the cool-down is over. */
export function evaluateStorm(
  storm: Storm | null,
  counts: UnhealthyCounts,
  now: EpochMs,
  cooldownMs: number,
): Storm | null {
  if (counts.unhealthy > counts.limit) {
    // A new breach during the cool-down continues the same storm.
    return { ...(storm ?? { since: now, onset: counts }), until: now + cooldownMs, blowing: true };
  }
  if (storm === null || now >= storm.until) return null;
  return storm.blowing ? { ...storm, blowing: false } : storm;
}
