import { byName } from "../base/by-name.ts";
import { type DurationMs, HOUR_MS } from "../base/duration.ts";
import type { PolicySpec } from "../config/schema/policy.ts";
import type { Safety } from "../config/schema/safety.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../model/node.ts";
import { MODES, type Mode } from "../model/policy/policy.ts";
import { lowerMode } from "./policy.ts";

/** The worst case under the active `safety.mode` and under every other one. */
export type WorstCase = ReturnType<typeof worstCase>;

/** Returns the worst case that the limits allow under each `safety.mode`, for any fleet and any conditions. */
export const worstCase = (safety: Safety, policies: readonly PolicySpec[]) => ({
  activeMode: safety.mode,
  modes: byName(MODES, (mode) => modeWorstCase(mode, safety, policies)),
});

/** The worst case under one `safety.mode`. */
export type ModeWorstCase = ReturnType<typeof modeWorstCase>;

function modeWorstCase(ceiling: Mode, safety: Safety, policies: readonly PolicySpec[]) {
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
    /** Policies that act only after an approval. */
    approvalPolicies,
    /** Maximum number of nodes acted on in any hour. Every action may be on another node. */
    nodesPerHour: maxNodesOf(perHour, (domain) => (limitOf(domain) === 0 ? 0 : perHour)),
    /** Maximum number of nodes disrupted at once. In a small fleet the percentage of max_disrupted may be lower. */
    nodesAtOnce: maxNodesOf(atOnce, (domain) => Math.min(atOnce, limitOf(domain))),
  };
}

/** Returns the largest number of nodes that can be affected in the fleet, and in any one region or country. */
const maxNodesOf = (fleet: number, maxOf: (domain: FailureDomain) => number) => ({
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
