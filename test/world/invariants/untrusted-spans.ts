import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import { corruptionOf } from "../../../src/simulator/api/paging.ts";
import type { PostAttempt, SimulationParts } from "../daemon/simulation-parts.ts";

/**
 * The effect of a fault on walks. `no_data`: every walk fails. `wrong_data`: walks succeed with data that must not be
 * trusted, so a cooldown follows.
 */
type TrustEffect = { readonly kind: "no_data" | "wrong_data"; readonly afterMs: number };

/** Share of missing nodes above which a list is certainly below `trust.min_inventory`. */
const VANISHED_SHARE_MIN = 0.3;
/** Number of nodes that may join or leave during a walk. */
const NODES_SLACK = 2;
/** The longest walk, with retries and timeouts. */
const WALK_MS = MINUTE_MS;
/** The daemon evaluates at least this often; the last evaluation during the fault starts the cooldown. */
const SLACK_MS = 10 * SECOND_MS;

/** Returns which fault made the inventory untrustworthy when a POST was sent, or null if none did. */
export function untrustedSpans({ at }: PostAttempt, parts: SimulationParts): string | null {
  const { service, config, processStartedAt, machine } = parts;
  const interval = parts.process?.plan().nodes?.intervalMs ?? 0;
  const now = service.network.now - service.network.startMs;
  const ageMs = at - Math.max(processStartedAt, machine.resumedAt());
  for (const fault of service.network.faultSchedule.faults) {
    const effect = effectOf(fault, interval, parts);
    if (effect === null) continue;
    // For the current process a fault starts with the process, or with the end of a suspension, at the earliest.
    const from = Math.max(fault.afterMs, now - ageMs) + effect.afterMs;
    const until = fault.afterMs + fault.forMs;
    if (from >= until || now < from) continue;
    if (now < until) return `${fault.fault.kind} has been active for ${seconds(now - fault.afterMs)} (${effect.kind})`;
    const cooldownMs = effect.kind === "wrong_data" ? config.safety.stormCooldownMs : 0;
    if (now < until + cooldownMs - SLACK_MS) return `${fault.fault.kind} ended ${seconds(now - until)} ago`;
  }
  return null;
}

function effectOf(
  { fault, match, share = 1 }: Fault,
  interval: number,
  { service, config }: SimulationParts,
): TrustEffect | null {
  const { maxFreshestLastSeenMs: staleMs, maxUnknown } = config.safety.trust;
  const affectsLists = match === undefined || "GET /v1/nodes?".startsWith(match);
  if (!affectsLists || share < 1) return null;
  const observedAfterMs = 2 * interval + WALK_MS;
  switch (fault.kind) {
    case "status":
    case "hang":
    case "reset":
    case "truncate":
    case "bad_json":
    case "html":
    case "wrong_shape":
    case "lost_reply":
      return { kind: "no_data", afterMs: observedAfterMs };
    case "empty_list":
      return { kind: "wrong_data", afterMs: observedAfterMs };
    case "vanished":
      return fault.missing >= VANISHED_SHARE_MIN ? { kind: "wrong_data", afterMs: observedAfterMs } : null;
    case "bad_records": {
      const { seed, fleet } = service.network;
      const unusable = fleet.nodes.filter(({ id }) => isUnusable(corruptionOf(seed, fault.spoiled, id))).length;
      return unusable > maxUnknown * fleet.nodes.length + NODES_SLACK
        ? { kind: "wrong_data", afterMs: observedAfterMs }
        : null;
    }
    case "stale_last_seen":
      return { kind: "wrong_data", afterMs: observedAfterMs + staleMs };
    default:
      return null;
  }
}

/** Returns whether a record with this corruption has no ID or no known status. */
const isUnusable = (corruption: Readonly<Record<string, unknown>> | null): boolean =>
  corruption !== null && ("id" in corruption || "status" in corruption);

const seconds = (ms: number): string => `${Math.round(ms / SECOND_MS)} s`;
