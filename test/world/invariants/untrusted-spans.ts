import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/model/scenario.ts";
import type { PostAttempt, SimulationParts } from "../daemon/simulation-parts.ts";

/**
 * The effect of a fault on walks. `no_data`: every walk fails. `wrong_data`: walks succeed with data that must not be
 * trusted, so a cooldown follows.
 */
type TrustEffect = { readonly kind: "no_data" | "wrong_data"; readonly afterMs: number };

/** Share of missing nodes above which a list is certainly below `trust.min_inventory`. */
const VANISHED_SHARE_MIN = 0.3;
/** Share of bad records above which the unknown ones certainly exceed `trust.max_unknown`. */
const UNKNOWN_SHARE_MIN = 0.6;
/** The longest walk, with retries and timeouts. */
const WALK_MS = MINUTE_MS;
/** The daemon evaluates at least this often; the last evaluation during the fault starts the cooldown. */
const SLACK_MS = 10 * SECOND_MS;

/** Returns which fault made the inventory untrustworthy when a POST was sent; null: none. */
export function untrustedSpans({ at }: PostAttempt, parts: SimulationParts): string | null {
  const { service, rules, processStartedAt } = parts;
  const interval = parts.process?.plan().nodes?.intervalMs ?? 0;
  const now = service.world.now - service.world.startMs;
  const ageMs = at - processStartedAt;
  for (const fault of service.world.faultSchedule.faults) {
    const effect = effectOf(fault, interval, rules.safety.trust.maxFreshestLastSeenMs);
    if (effect === null) continue;
    // For the current process a fault starts with the process at the earliest.
    const from = Math.max(fault.afterMs, now - ageMs) + effect.afterMs;
    const until = fault.afterMs + fault.forMs;
    if (from >= until || now < from) continue;
    if (now < until) return `${fault.fault.kind} has been active for ${seconds(now - fault.afterMs)} (${effect.kind})`;
    const cooldownMs = effect.kind === "wrong_data" ? rules.safety.stormCooldownMs : 0;
    if (now < until + cooldownMs - SLACK_MS) return `${fault.fault.kind} ended ${seconds(now - until)} ago`;
  }
  return null;
}

function effectOf({ fault, match, share = 1 }: Fault, interval: number, staleMs: number): TrustEffect | null {
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
      return fault.share >= VANISHED_SHARE_MIN ? { kind: "wrong_data", afterMs: observedAfterMs } : null;
    case "bad_records":
      return fault.share >= UNKNOWN_SHARE_MIN ? { kind: "wrong_data", afterMs: observedAfterMs } : null;
    case "stale_last_seen":
      return { kind: "wrong_data", afterMs: observedAfterMs + staleMs };
    default:
      return null;
  }
}

const seconds = (ms: number): string => `${Math.round(ms / SECOND_MS)} s`;
