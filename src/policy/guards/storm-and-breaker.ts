import { formatSecondsLeft } from "../../base/duration.ts";
import { oncePerObject } from "../../base/once-per-key.ts";
import { countNoun } from "../../base/text.ts";
import type { NodeId } from "../../model/node.ts";
import { type EpochMs, formatTime } from "../../model/time.ts";
import { isDryRun } from "../policy.ts";
import { defineGuard, defineSimpleGuard } from "./guard-types.ts";

/** A node that began to fire, or was lost. */
export interface FiringNode {
  readonly node: NodeId;
  /** Under which policy it fired, or null if it was lost. Absent in a journal of an earlier version. */
  readonly policy?: string | null;
  readonly at: EpochMs;
}

/** The circuit breaker counts nodes that begin to fire. Once open, it stays open until an operator resets it. */
export interface Breaker {
  /** The last firing of each node within the period. */
  readonly firings: readonly FiringNode[];
  readonly open: OpenBreaker | null;
  /** When an operator closed it last. Absent if never. */
  readonly resetAt?: EpochMs;
}

/** When the breaker opened, and what it had counted. */
export interface OpenBreaker {
  readonly openedAt: EpochMs;
  readonly nodes: number;
  /** As {@link formatCauses} shows them. Absent in a journal of an earlier version. */
  readonly causes?: string;
}

/** The initial state. */
export const CLOSED_BREAKER: Breaker = { firings: [], open: null };

/**
 * Counts nodes that began to fire at `now`. The breaker opens if there are more than `limit`, but only when a node
 * begins to fire. A limit that is temporarily low because not all nodes are listed yet does not open it.
 */
export function recordFirings(
  breaker: Breaker,
  nodes: readonly Omit<FiringNode, "at">[],
  { now, withinMs, limit }: { readonly now: EpochMs; readonly withinMs: number; readonly limit: number },
): Breaker {
  const newlyFiring = new Map(nodes.map((firing) => [firing.node, { ...firing, at: now }]));
  const recentFirings = breaker.firings.filter(({ node, at }) => at > now - withinMs && !newlyFiring.has(node));
  if (newlyFiring.size === 0 && recentFirings.length === breaker.firings.length) return breaker;
  if (breaker.open !== null) return { ...breaker, firings: [] };
  const firings = [...recentFirings, ...newlyFiring.values()];
  return newlyFiring.size > 0 && firings.length > limit
    ? { ...breaker, firings: [], open: { openedAt: now, nodes: firings.length, causes: causesOf(firings) } }
    : { ...breaker, firings, open: null };
}

function causesOf(firings: readonly FiringNode[]): string {
  const groups = Map.groupBy(firings, ({ policy = "an unknown policy" }) =>
    policy === null ? "lost" : `under ${policy}`,
  );
  return formatCauses(new Map([...groups].map(([cause, { length }]) => [cause, length])));
}

/** Number of causes that a text names. */
const CAUSES_MAX = 3;

/**
 * Returns the causes of most nodes, such as `117 firing under high-cpu, 3 offline`. A storm holds many nodes, each with
 * the same counts in its reason, so they are formatted once.
 */
export const formatCauses = oncePerObject((nodesBy: ReadonlyMap<string, number>): string => {
  const counts = [...nodesBy].filter(([, nodes]) => nodes > 0).toSorted(([, a], [, b]) => b - a);
  const named = counts.slice(0, CAUSES_MAX).map(([cause, nodes]) => `${nodes} ${cause}`);
  const others = counts.slice(CAUSES_MAX).reduce((sum, [, nodes]) => sum + nodes, 0);
  return [...named, ...(others === 0 ? [] : [`${others} for other reasons`])].join(", ");
});

/** Returns what the breaker counted, in one line. */
export const breakerCause = ({ nodes, causes }: OpenBreaker): string =>
  `${countNoun(nodes, "node")} had fired or been lost${inParentheses(causes)}`;

const inParentheses = (causes: string | undefined): string => (causes === undefined ? "" : ` (${causes})`);

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
interface UnhealthyCounts {
  readonly unhealthy: number;
  readonly nodes: number;
  readonly limit: number;
  /** As {@link formatCauses} shows them. Absent in a journal of an earlier version. */
  readonly causes?: string;
}

/** Returns why the storm began, in one line. */
export function stormCause({ since, onset }: Storm): string {
  if (onset === undefined) return "too many nodes are unhealthy at once";
  const { unhealthy, nodes, limit, causes } = onset;
  return `${unhealthy} of ${nodes} nodes ${unhealthy === 1 ? "was" : "were"} unhealthy at ${formatTime(since)}${inParentheses(causes)}, and the limit is ${limit} (safety.max_unhealthy)`;
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
      operatorAction:
        "find the common cause: network, service, upstream, or a policy that fires on too many nodes; the detail has the counts",
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
      const { unhealthy, nodes, unhealthyBy } = fleetCounts;
      const verb = unhealthy === 1 ? "is" : "are";
      const detail = `${unhealthy} of ${nodes} nodes ${verb} unhealthy (${formatCauses(unhealthyBy)}); the limit is ${limits.maxUnhealthy} (storm)`;
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

/**
 * Holds every node while the circuit breaker is open. It stays open across restarts until an operator resets it. The
 * breaker of dry runs closes by itself.
 */
export const breakerGuard = defineSimpleGuard({
  reason: "breaker",
  counts: "nodes that began to fire, or were lost, within `safety.breaker.within`",
  condition: "there were more than `amount` or `percent` of `safety.breaker`, whichever is larger",
  ends: "with `reset-breaker`; in a dry run automatically, `safety.breaker.within` after it opened",
  operatorAction: "find out why so many nodes fired or were lost, then `reset-breaker`",
  alert: "ProxywardenBreakerOpen",
  policyWide: true,
  details: ({ active }, { breaker: { open }, safety }) => {
    if (open === null) return [];
    const end = isDryRun(active)
      ? `the breaker of dry runs closes at ${formatTime(open.openedAt + safety.breaker.withinMs)}`
      : "reset-breaker closes it";
    return [`it opened at ${formatTime(open.openedAt)} after ${breakerCause(open)}; ${end}`];
  },
});
