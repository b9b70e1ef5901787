import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/model/scenario.ts";
import { corruptionOf } from "../../../src/simulator/api/paging.ts";
import type { PostAttempt, SimulationParts } from "../daemon/simulation-parts.ts";

/**
 * What a fault does to sight. `blind`: no walk succeeds; `deceived`: walks succeed, and what they show can't be believed,
 * so that a cool-down follows.
 */
type TrustEffect = { readonly kind: "blind" | "deceived"; readonly afterMs: number };

/** A list that lost this share of its nodes is surely too short, as trust has it. */
const VANISHED_SHARE_MIN = 0.3;
/** Nodes that may join or leave while the list is walked. */
const NODES_SLACK = 2;
/** Retries and time-outs of one walk. */
const WALK_MS = MINUTE_MS;
/** The daemon looks at least this often: the last look before an end begins the cool-down. */
const SLACK_MS = 10 * SECOND_MS;

/** Whether a fault of the script truly stood in the way of sight when a POST was sent; null: none did. */
export function untrustedSpans({ at }: PostAttempt, parts: SimulationParts): string | null {
  const { service, rules, bornAt } = parts;
  const interval = parts.process?.plan().nodes?.intervalMs ?? 0;
  const now = service.world.now - service.world.startMs;
  const ageMs = at - bornAt;
  for (const fault of service.world.faultSchedule.faults) {
    const effect = effectOf(fault, interval, parts);
    if (effect === null) continue;
    // A life sees nothing before it begins: what was on before that is on from then.
    const from = Math.max(fault.afterMs, now - ageMs) + effect.afterMs;
    const until = fault.afterMs + fault.forMs;
    if (from >= until || now < from) continue;
    if (now < until) return `${fault.fault.kind} is on since ${seconds(now - fault.afterMs)} (${effect.kind})`;
    const cooldownMs = effect.kind === "deceived" ? rules.safety.stormCooldownMs : 0;
    if (now < until + cooldownMs - SLACK_MS) return `${fault.fault.kind} ended only ${seconds(now - until)} ago`;
  }
  return null;
}

function effectOf(
  { fault, match, share = 1 }: Fault,
  interval: number,
  { service, rules }: SimulationParts,
): TrustEffect | null {
  const { maxFreshestLastSeenMs: staleMs, maxUnknown } = rules.safety.trust;
  const isOfLists = match === undefined || "GET /v1/nodes?".startsWith(match);
  if (!isOfLists || share < 1) return null;
  const seen = 2 * interval + WALK_MS;
  switch (fault.kind) {
    case "status":
    case "hang":
    case "reset":
    case "truncate":
    case "bad_json":
    case "html":
    case "wrong_shape":
    case "lost_reply":
      return { kind: "blind", afterMs: seen };
    case "empty_list":
      return { kind: "deceived", afterMs: seen };
    case "vanished":
      return fault.share >= VANISHED_SHARE_MIN ? { kind: "deceived", afterMs: seen } : null;
    case "bad_records": {
      const { seed, fleet } = service.world;
      const unusable = fleet.nodes.filter(({ id }) => isUnusable(corruptionOf(seed, fault.share, id))).length;
      return unusable > maxUnknown * fleet.nodes.length + NODES_SLACK ? { kind: "deceived", afterMs: seen } : null;
    }
    case "stale_last_seen":
      return { kind: "deceived", afterMs: seen + staleMs };
    default:
      return null;
  }
}

/** Whether a record with this corruption has no id or no known status. */
const isUnusable = (corruption: Readonly<Record<string, unknown>> | null): boolean =>
  corruption !== null && ("id" in corruption || "status" in corruption);

const seconds = (ms: number): string => `${Math.round(ms / SECOND_MS)} s`;
