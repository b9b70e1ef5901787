import { byName } from "../../base/by-name.ts";
import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { Safety } from "../../config/schema/safety.ts";
import { FAILURE_DOMAINS, type FailureDomain, type PerFailureDomain } from "../../model/node.ts";
import { MODES, type Mode, type PolicySpec } from "../../model/policy/policy.ts";
import type { EpochMs } from "../../model/time.ts";
import { lowerMode } from "../policy.ts";

/** The limits by percentage, converted to nodes for a fleet of a given size. */
export interface EffectiveLimits {
  /** A storm begins if more nodes than this are unhealthy at once. */
  readonly maxUnhealthy: number;
  readonly maxDisrupted: number;
  /** The breaker opens if more nodes than this fire within its period. */
  readonly breaker: number;
}

/** Returns the limits for a fleet of `nodes` nodes. */
export function effectiveLimits(safety: Safety, nodes: number): EffectiveLimits {
  return {
    maxUnhealthy: nodesOfShare(safety.maxUnhealthy.share, nodes),
    maxDisrupted: Math.min(safety.maxDisrupted.amount, nodesOfShare(safety.maxDisrupted.share, nodes)),
    breaker: Math.max(safety.breaker.amount, nodesOfShare(safety.breaker.share, nodes)),
  };
}

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

/** Largest number of nodes that can be affected in the fleet, and in any one region or country. */
export type MaxNodes = Readonly<Record<"fleet" | FailureDomain, number>>;

/** The worst case under one `safety.mode`, for any fleet and any conditions. */
export interface ModeWorstCase {
  /** Policies that act automatically. */
  readonly automaticPolicies: readonly string[];
  /** Policies that act only after an approval. */
  readonly approvalPolicies: readonly string[];
  /** Number of nodes acted on in any hour. Every action may be on another node. */
  readonly nodesPerHour: MaxNodes;
  /** Number of nodes disrupted at once. In a small fleet the percentage of max_disrupted may be lower. */
  readonly nodesAtOnce: MaxNodes;
}

/** The worst case under the active `safety.mode` and under every other one. */
export interface WorstCase {
  readonly activeMode: Mode;
  readonly modes: Readonly<Record<Mode, ModeWorstCase>>;
}

/** Returns the worst case that the limits allow, for any fleet and any conditions. */
export function worstCase(safety: Safety, policies: readonly PolicySpec[]): WorstCase {
  return { activeMode: safety.mode, modes: byName(MODES, (mode) => modeWorstCase(mode, safety, policies)) };
}

function modeWorstCase(ceiling: Mode, safety: Safety, policies: readonly PolicySpec[]): ModeWorstCase {
  const acting = policies.filter((policy) => idleReasons(policy).length === 0);
  const namesOf = (mode: Mode) =>
    acting.filter((policy) => lowerMode(policy.mode, ceiling) === mode).map(({ name }) => name);
  const [automaticPolicies, approvalPolicies] = [namesOf("enforce"), namesOf("approve")];
  const isIdle = automaticPolicies.length + approvalPolicies.length === 0 || zeroLimits(safety).length > 0;
  const atOnce = isIdle ? 0 : safety.maxDisrupted.amount;
  const perHour = isIdle ? 0 : safety.maxActions.amount * windowsPerHour(safety.maxActions.perMs);
  // All actions of an hour may be in one region or country, because the next one may follow as soon as a node is
  // healthy again.
  const limitOf = (domain: FailureDomain) => safety.maxDisruptedPer[domain] ?? Number.POSITIVE_INFINITY;
  return {
    automaticPolicies,
    approvalPolicies,
    nodesPerHour: maxNodesOf(perHour, (domain) => (limitOf(domain) === 0 ? 0 : perHour)),
    nodesAtOnce: maxNodesOf(atOnce, (domain) => Math.min(atOnce, limitOf(domain))),
  };
}

const maxNodesOf = (fleet: number, maxOf: (domain: FailureDomain) => number): MaxNodes => ({
  fleet,
  ...byName(FAILURE_DOMAINS, maxOf),
});

/** Returns why a policy acts on no node in any mode, as predicates of a sentence. Empty if it may act. */
export const idleReasons = ({ steps, retry }: PolicySpec): readonly string[] => [
  ...(retry.episodes === 0 ? ["has retry.episodes 0"] : []),
  ...(steps.every(({ action }) => action === "notify") ? ["has no step that acts on a node"] : []),
];

/** Returns the limits that prevent every action because they are 0, by their keys in `safety`. */
export const zeroLimits = (safety: Safety): readonly string[] =>
  Object.entries({
    "max_unhealthy.percent": safety.maxUnhealthy.share,
    "max_disrupted.percent": safety.maxDisrupted.share,
    "max_disrupted.amount": safety.maxDisrupted.amount,
    max_in_flight: safety.maxInFlight,
    "max_actions.amount": safety.maxActions.amount,
    breaker: Math.max(safety.breaker.share, safety.breaker.amount),
    ...Object.fromEntries(
      FAILURE_DOMAINS.map((domain) => [`max_disrupted_per.${domain}`, safety.maxDisruptedPer[domain] ?? 1]),
    ),
  }).flatMap(([key, limit]) => (limit === 0 ? [key] : []));

/** How often the limit of a sliding window can be used up within an hour. */
const windowsPerHour = (perMs: DurationMs): number => Math.ceil(HOUR_MS / perMs);
