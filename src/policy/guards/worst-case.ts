import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Safety } from "../../config/schema/safety.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/node.ts";
import { MODES, type Mode, type PolicyRule } from "../../model/policy/policy.ts";
import { lowerMode } from "../policy.ts";

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
export function worstCase(safety: Safety, rules: readonly PolicyRule[]): WorstCase {
  const modes = MODES.map((mode) => [mode, modeWorstCase(mode, safety, rules)] as const);
  return { activeMode: safety.mode, modes: Object.fromEntries(modes) as Record<Mode, ModeWorstCase> };
}

function modeWorstCase(ceiling: Mode, safety: Safety, rules: readonly PolicyRule[]): ModeWorstCase {
  const actingRules = rules.filter(actsOnNodes);
  const namesOf = (mode: Mode) =>
    actingRules.filter((rule) => lowerMode(rule.mode, ceiling) === mode).map(({ name }) => name);
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
  ...(Object.fromEntries(FAILURE_DOMAINS.map((domain) => [domain, maxOf(domain)])) as Record<FailureDomain, number>),
});

/** Returns whether a policy can act on nodes, rather than only notify. */
export const actsOnNodes = ({ steps, retry }: PolicyRule): boolean =>
  retry.episodes > 0 && steps.some(({ action }) => action !== "notify");

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
