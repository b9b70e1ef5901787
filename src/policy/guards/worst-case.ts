import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Safety } from "../../config/schema/safety.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/node.ts";
import { MODES, type Mode, type PolicyRule } from "../../model/policy/policy.ts";
import { lowerMode } from "../policy.ts";

/** Most nodes that can be affected: in the fleet, and in any one region or country. */
export type MaxNodes = Readonly<Record<"fleet" | FailureDomain, number>>;

/** What could happen at worst under one `safety.mode`, whatever the nodes do and however large the fleet is. */
export interface ModeWorstCase {
  /** Policies that act automatically. */
  readonly automaticPolicies: readonly string[];
  /** Policies that act after an approval. */
  readonly approvalPolicies: readonly string[];
  /** Nodes acted on in any hour: as many as actions, for each may be on another node. */
  readonly nodesPerHour: MaxNodes;
  /** Nodes disrupted at once. In a small fleet the share of max_disrupted may hold earlier. */
  readonly nodesAtOnce: MaxNodes;
}

/** What could happen at worst, by `safety.mode`: the one in force, and what another would allow. */
export interface WorstCase {
  readonly activeMode: Mode;
  readonly modes: Readonly<Record<Mode, ModeWorstCase>>;
}

/** Returns the worst case that the limits allow, for any fleet and any conditions. */
export function worstCase(safety: Safety, rules: readonly PolicyRule[]): WorstCase {
  const reaches = MODES.map((mode) => [mode, modeWorstCase(mode, safety, rules)] as const);
  return { activeMode: safety.mode, modes: Object.fromEntries(reaches) as Record<Mode, ModeWorstCase> };
}

function modeWorstCase(ceiling: Mode, safety: Safety, rules: readonly PolicyRule[]): ModeWorstCase {
  const touching = rules.filter(actsOnNodes);
  const namesOf = (mode: Mode) =>
    touching.filter((rule) => lowerMode(rule.mode, ceiling) === mode).map(({ name }) => name);
  const [acting, asking] = [namesOf("enforce"), namesOf("approve")];
  const isIdle = acting.length + asking.length === 0 || holdsEveryNode(safety);
  const atOnce = isIdle ? 0 : safety.maxDisrupted.amount;
  const anHour = isIdle ? 0 : safety.maxActions.amount * windowsPerHour(safety.maxActions.perMs);
  // All actions may be in one region or country: as soon as one node is healthy again, the next one may follow.
  const limitOf = (domain: FailureDomain) => safety.maxDisruptedPer[domain] ?? Number.POSITIVE_INFINITY;
  return {
    automaticPolicies: acting,
    approvalPolicies: asking,
    nodesPerHour: maxNodesOf(anHour, (domain) => (limitOf(domain) === 0 ? 0 : anHour)),
    nodesAtOnce: maxNodesOf(atOnce, (domain) => Math.min(atOnce, limitOf(domain))),
  };
}

const maxNodesOf = (fleet: number, of: (domain: FailureDomain) => number): MaxNodes => ({
  fleet,
  ...(Object.fromEntries(FAILURE_DOMAINS.map((domain) => [domain, of(domain)])) as Record<FailureDomain, number>),
});

/** Whether a policy can act on nodes, rather than only notify. */
const actsOnNodes = ({ steps, retry }: PolicyRule): boolean =>
  retry.episodes > 0 && steps.some(({ action }) => action !== "notify");

/** Whether a limit prevents every action. */
const holdsEveryNode = (safety: Safety): boolean =>
  [
    safety.maxUnhealthy.share,
    safety.maxDisrupted.share,
    safety.maxDisrupted.amount,
    safety.maxInFlight,
    safety.maxActions.amount,
    Math.max(safety.breaker.share, safety.breaker.amount),
    ...FAILURE_DOMAINS.map((domain) => safety.maxDisruptedPer[domain] ?? 1),
  ].includes(0);

/** How often a window that slides along an hour can be filled within it. */
const windowsPerHour = (perMs: DurationMs): number => Math.ceil(HOUR_MS / perMs);
