import { formatDuration } from "../../base/duration.ts";
import type { Config } from "../../config/schema/config.ts";
import { HOLDS } from "../../model/remediation/hold-reasons.ts";
import { DOMAINS } from "../../model/policy/safety.ts";
import type { EpochMs } from "../../model/time.ts";
import { namedLimits, nodeLimits } from "../../policy/guards/limits.ts";
import { safetyOf } from "../../daemon/policy-settings.ts";
import { pastOf } from "./network-size.ts";

/** The size of a fleet, in nodes, and where it is known from: an option, or the daemon's state. */
export interface FleetSize {
  readonly nodes: number;
  readonly source: "options" | "state";
}

/** The size that was given, or the one that a daemon saw last; null: neither is known. */
export function fleetSize(given: number | undefined, config: Config, now: EpochMs): FleetSize | null {
  if (given !== undefined) return { nodes: given, source: "options" };
  const past = pastOf(config, now);
  const nodes = past.ok ? (past.value.extent?.nodes ?? 0) : 0;
  return nodes === 0 ? null : { nodes, source: "state" };
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** What the limits come to on a fleet of this size, as one line. */
export function limitsText(config: Config, size: FleetSize | null): string {
  if (size === null) return "limits for this fleet: the fleet size is unknown; pass --nodes\n";
  const safety = safetyOf(config);
  const limits = nodeLimits(safety, size.nodes);
  const perDomain = DOMAINS.flatMap((domain) => {
    const limit = safety.maxDisruptedPer[domain];
    return limit === null ? [] : [`${Math.min(limit, limits.maxDisrupted)} per ${domain}`];
  });
  const source = size.source === "options" ? "--nodes" : "as last seen by the daemon";
  const actions = `${counted(limits.maxActions, "action")} in ${formatDuration(safety.maxActions.perMs)}`;
  const unhealthy = `${counted(limits.maxUnhealthy, "node")} ${limits.maxUnhealthy === 1 ? "is" : "are"} unhealthy`;
  const firing = `${counted(limits.breaker, "node")} fire within ${formatDuration(safety.breaker.withinMs)}`;
  const terms = [
    `at most ${[`${counted(limits.maxDisrupted, "node")} disrupted at once`, ...perDomain].join(", ")}`,
    `at most ${actions}, ${limits.maxInFlight} in flight`,
    `no action while more than ${unhealthy}`,
    `the breaker opens when more than ${firing}`,
  ];
  const ends = LIMITS.map((reason) => `  a hold for ${reason} ends ${HOLDS[reason].ends.replaceAll("`", "")}\n`);
  return `limits on ${counted(size.nodes, "node")} (${source}): ${terms.join("; ")}\n${ends.join("")}`;
}

/** The reasons to hold that these limits give. */
const LIMITS = ["disrupted", "disrupted_domain", "max_actions", "in_flight", "storm", "breaker"] as const;

/** The same in snake_case, by the names of the limits in the configuration; null: the size is not known. */
export const limitsJson = (config: Config, size: FleetSize | null): object | null =>
  size === null ? null : { ...size, ...namedLimits(safetyOf(config), size.nodes) };
