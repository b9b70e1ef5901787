import { byName } from "../../base/by-name.ts";
import { formatDuration } from "../../base/duration.ts";
import { formatPercent } from "../../base/percent.ts";
import type { Safety } from "../../config/schema/safety.ts";
import { FAILURE_DOMAINS, type FailureDomain } from "../../model/node.ts";
import { MODES } from "../../model/policy/policy.ts";
import { effectiveLimits, limitsByName } from "../../policy/guards/safety-limits.ts";
import type { ModeWorstCase, WorstCase } from "../../policy/worst-case.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { PROGRAM } from "../context.ts";
import type { FleetSize } from "../network-size.ts";
import { SOURCE_TEXTS } from "./plan-table.ts";

/**
 * Formats the maximum number of nodes that policies can act on, a line for each `safety.mode`. `policies` is the number of
 * policies.
 */
export function formatWorstCase({ activeMode, modes }: WorstCase, safety: Safety, policies: number): string {
  const share = formatPercent(safety.maxDisrupted.share);
  const lines = MODES.map((mode) => {
    const name = `${mode}${mode === activeMode ? " (in force)" : ""}`;
    return `  ${name.padEnd(19)} ${formatModeWorstCase(modes[mode], share)}`;
  });
  const count = policies === 1 ? "1 policy" : `${policies} policies`;
  return `${count}; maximum number of nodes that policies can act on, by safety.mode:\n${lines.join("\n")}\n`;
}

function formatModeWorstCase(
  { automaticPolicies, approvalPolicies, nodesPerHour, nodesAtOnce }: ModeWorstCase,
  share: string,
): string {
  if (nodesPerHour.fleet === 0) return "none";
  const who = [
    ...(automaticPolicies.length === 0 ? [] : [`automatically: ${automaticPolicies.join(", ")}`]),
    ...(approvalPolicies.length === 0 ? [] : [`after approval: ${approvalPolicies.join(", ")}`]),
  ];
  const perDomain = (domain: FailureDomain) =>
    `in one ${domain} ${nodesPerHour[domain]} per hour, ${nodesAtOnce[domain]} at once`;
  const fleet = `${nodesPerHour.fleet} per hour, ${nodesAtOnce.fleet} at once and at most ${share} of the fleet`;
  return `${fleet}; ${perDomain("region")}; ${perDomain("country")}; ${who.join("; ")}`;
}

/** Returns the worst case as JSON: for each `safety.mode`, the policies that act, by their mode, and on how many nodes. */
export const worstCaseJson = ({ activeMode, modes }: WorstCase): object => ({
  in_force: activeMode,
  modes: byName(MODES, (mode) => {
    const { automaticPolicies: enforce, approvalPolicies: approve, nodesPerHour, nodesAtOnce } = modes[mode];
    return { policies: { approve, enforce }, nodes_per_hour: nodesPerHour, nodes_at_once: nodesAtOnce };
  }),
});

/** Formats the limits for a fleet of this size, a line each, and how the holds that they cause end. */
export function formatLimits(safety: Safety, size: FleetSize | null, isProbed: boolean): string {
  if (size === null)
    return `limits for this fleet: the fleet size is unknown; pass --nodes${isProbed ? "" : ", or ask the service with --probe"}\n`;
  const limits = effectiveLimits(safety, size.nodes);
  const perDomain = FAILURE_DOMAINS.flatMap((domain) => {
    const limit = safety.maxDisruptedPer[domain];
    return limit === null ? [] : [`${Math.min(limit, limits.maxDisrupted)} per ${domain}`];
  });
  const actions = `${countNoun(safety.maxActions.amount, "action")} in ${formatDuration(safety.maxActions.perMs)}`;
  const unhealthy = `${countNoun(limits.maxUnhealthy, "node")} ${limits.maxUnhealthy === 1 ? "is" : "are"} unhealthy`;
  const verbs = limits.breaker === 1 ? "fires or is lost" : "fire or are lost";
  const firing = `${countNoun(limits.breaker, "node")} ${verbs} within ${formatDuration(safety.breaker.withinMs)}`;
  const terms = [
    `at most ${[`${countNoun(limits.maxDisrupted, "node")} disrupted at once`, ...perDomain].join(", ")}`,
    `at most ${actions}, ${safety.maxInFlight} in flight`,
    `no action while more than ${unhealthy}`,
    `the breaker opens when more than ${firing}`,
  ];
  const lines = [...terms, HOLD_ENDS].map((line) => `  ${line}\n`);
  return `limits for ${countNoun(size.nodes, "node")} (${SOURCE_TEXTS[size.source]})\n${lines.join("")}`;
}

const HOLD_ENDS = `a hold caused by one of these limits ends automatically, with two exceptions: the breaker waits for an operator (${PROGRAM} reset-breaker), and nodes that are lost or down after an action count until they are back or ${PROGRAM} accept-inventory is run`;

/** Returns the limits for a fleet of this size, by their configuration keys, or null if the size is unknown. */
export const limitsJson = (safety: Safety, size: FleetSize | null): object | null =>
  size === null ? null : { ...size, ...limitsByName(safety, size.nodes) };
