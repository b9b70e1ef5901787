import { formatDuration } from "../../base/duration.ts";
import type { Config } from "../../config/schema/config.ts";
import { FAILURE_DOMAINS } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { HOLD_REASON_ROWS } from "../../policy/guards/all-guards.ts";
import { effectiveLimits, limitsByName } from "../../policy/guards/limits.ts";
import { countNoun } from "../output/text.ts";
import { readStoredState } from "./network-size.ts";

/** Size of a fleet, in nodes, and its source: an option, or the daemon's state. */
interface FleetSize {
  readonly nodes: number;
  readonly source: "options" | "state";
}

/** Returns the given size, or else the one that the daemon saw last, or null if neither is known. */
export async function fleetSize(given: number | undefined, config: Config, now: EpochMs): Promise<FleetSize | null> {
  if (given !== undefined) return { nodes: given, source: "options" };
  const stored = await readStoredState(config, now);
  const nodes = stored.ok ? (stored.value.networkSize?.nodes ?? 0) : 0;
  return nodes === 0 ? null : { nodes, source: "state" };
}

/**
 * Formats the limits for a fleet of this size on one line, followed by one line for each reason with how its hold ends.
 */
export function formatLimits(config: Config, size: FleetSize | null): string {
  if (size === null) return "limits for this fleet: the fleet size is unknown; pass --nodes\n";
  const safety = config.safety;
  const limits = effectiveLimits(safety, size.nodes);
  const perDomain = FAILURE_DOMAINS.flatMap((domain) => {
    const limit = safety.maxDisruptedPer[domain];
    return limit === null ? [] : [`${Math.min(limit, limits.maxDisrupted)} per ${domain}`];
  });
  const source = size.source === "options" ? "--nodes" : "as last seen by the daemon";
  const actions = `${countNoun(safety.maxActions.amount, "action")} in ${formatDuration(safety.maxActions.perMs)}`;
  const unhealthy = `${countNoun(limits.maxUnhealthy, "node")} ${limits.maxUnhealthy === 1 ? "is" : "are"} unhealthy`;
  const firing = `${countNoun(limits.breaker, "node")} fire within ${formatDuration(safety.breaker.withinMs)}`;
  const terms = [
    `at most ${[`${countNoun(limits.maxDisrupted, "node")} disrupted at once`, ...perDomain].join(", ")}`,
    `at most ${actions}, ${safety.maxInFlight} in flight`,
    `no action while more than ${unhealthy}`,
    `the breaker opens when more than ${firing}`,
  ];
  const ends = FLEET_LIMIT_REASONS.map(
    (reason) => `  a hold for ${reason} ends ${HOLD_REASON_ROWS[reason].ends.replaceAll("`", "")}\n`,
  );
  return `limits on ${countNoun(size.nodes, "node")} (${source}): ${terms.join("; ")}\n${ends.join("")}`;
}

/** The hold reasons that these limits cause. */
const FLEET_LIMIT_REASONS = ["disrupted", "disrupted_domain", "max_actions", "in_flight", "storm", "breaker"] as const;

/** The limits for a fleet of this size, by their configuration keys, or null if the size is unknown. */
export const limitsJson = (config: Config, size: FleetSize | null): object | null =>
  size === null ? null : { ...size, ...limitsByName(config.safety, size.nodes) };
