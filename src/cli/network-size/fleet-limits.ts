import { formatDuration } from "../../base/duration.ts";
import type { Config } from "../../config/schema/config.ts";
import { FAILURE_DOMAINS } from "../../model/node.ts";
import { effectiveLimits, limitsByName } from "../../policy/guards/limits.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { PROGRAM } from "../context.ts";
import { type CountSource, SOURCE_TEXTS } from "../output/plan-table.ts";
import type { StoredState } from "./network-size.ts";

/** Size of a fleet, in nodes, and its source: an option, a probe of the service, or the daemon's state. */
interface FleetSize {
  readonly nodes: number;
  readonly source: CountSource;
}

/** Returns the given size, or the one that a probe has shown, or the one in the daemon's state; or null if none is known. */
export function fleetSize(
  given: number | undefined,
  probed: number | null,
  stored: StoredState | null,
): FleetSize | null {
  if (given !== undefined) return { nodes: given, source: "options" };
  if (probed !== null && probed > 0) return { nodes: probed, source: "service" };
  const nodes = stored?.networkSize?.nodes ?? 0;
  return nodes === 0 ? null : { nodes, source: "state" };
}

/** Formats the limits for a fleet of this size, a line each, and how the holds that they cause end. */
export function formatLimits(config: Config, size: FleetSize | null, isProbed: boolean): string {
  if (size === null)
    return `limits for this fleet: the fleet size is unknown; pass --nodes${isProbed ? "" : ", or ask the service with --probe"}\n`;
  const safety = config.safety;
  const limits = effectiveLimits(safety, size.nodes);
  const perDomain = FAILURE_DOMAINS.flatMap((domain) => {
    const limit = safety.maxDisruptedPer[domain];
    return limit === null ? [] : [`${Math.min(limit, limits.maxDisrupted)} per ${domain}`];
  });
  const actions = `${countNoun(safety.maxActions.amount, "action")} in ${formatDuration(safety.maxActions.perMs)}`;
  const unhealthy = `${countNoun(limits.maxUnhealthy, "node")} ${limits.maxUnhealthy === 1 ? "is" : "are"} unhealthy`;
  const firing = `${countNoun(limits.breaker, "node")} fire within ${formatDuration(safety.breaker.withinMs)}`;
  const terms = [
    `at most ${[`${countNoun(limits.maxDisrupted, "node")} disrupted at once`, ...perDomain].join(", ")}`,
    `at most ${actions}, ${safety.maxInFlight} in flight`,
    `no action while more than ${unhealthy}`,
    `the breaker opens when more than ${firing}`,
  ];
  const lines = [...terms, HOLD_ENDS].map((line) => `  ${line}\n`);
  return `limits on ${countNoun(size.nodes, "node")} (${SOURCE_TEXTS[size.source]})\n${lines.join("")}`;
}

const HOLD_ENDS = `a node held by one of these limits is freed automatically; only the breaker waits for an operator: ${PROGRAM} reset-breaker`;

/** The limits for a fleet of this size, by their configuration keys, or null if the size is unknown. */
export const limitsJson = (config: Config, size: FleetSize | null): object | null =>
  size === null ? null : { ...size, ...limitsByName(config.safety, size.nodes) };
