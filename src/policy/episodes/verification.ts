import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../base/duration.ts";
import type { NodeStatus } from "../../model/node.ts";
import type { StepVerification } from "../../model/policy/policy.ts";
import type { Action, RebootProof } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

/** What was observed of a node after an action was sent. */
export interface StepObservation {
  /** The journal's clock. */
  readonly now: EpochMs;
  /** Whether its record was observed after the step was sent; if not, nothing else here counts. */
  readonly isFresh: boolean;
  readonly status: NodeStatus;
  /** What `when` says on data that was all observed after the step was sent. */
  readonly when: "true" | "false" | "unknown";
  /** What the step's own `expect` says; null: it has none. */
  readonly expect: "true" | "false" | "unknown" | null;
}

/** How a step ended. `in_doubt`: the result can't be determined, and waiting longer would not help. */
export type StepResult = "verified" | "ineffective" | "in_doubt";

/** Minimum extension of a step whose result is unknown when its time is up. */
const EXTENSION_MS_MIN: DurationMs = 10 * MINUTE_MS;

/**
 * A step whose node is not seen stays under way so long, and counts as such: two walks of a large fleet on a small plan
 * settle by then whether the node is there or has left the list.
 */
export const UNOBSERVED_MS_MAX: DurationMs = 6 * HOUR_MS;

/** Returns when the time of a step is up, and when an unknown result becomes final. */
export function stepDeadlines(
  { sentAt }: Action,
  { withinMs }: StepVerification,
): { readonly end: EpochMs; readonly last: EpochMs } {
  const end = (sentAt ?? 0) + withinMs;
  return { end, last: end + Math.max(EXTENSION_MS_MIN, withinMs) };
}

/**
 * Evaluates a step by what was observed: it ends as soon as what is expected holds, or when its time is up; ended with `when`
 * false it is verified, with `when` true ineffective. Null: it goes on.
 */
export function evaluateStep(action: Action, verify: StepVerification, seen: StepObservation): StepResult | null {
  const { end, last } = stepDeadlines(action, verify);
  if (!seen.isFresh) return seen.now >= Math.max(last, end + UNOBSERVED_MS_MAX) ? "in_doubt" : null;
  const isMet = seen.expect === null ? meetsDefaultExpectation(action, seen) : seen.expect === "true";
  if (!isMet && seen.now < end) return null;
  if (action.request.kind === "quarantine" && seen.status === "quarantined") {
    // In quarantine `when` may be unknown. That the node is quarantined is what was asked for.
    return seen.when === "true" ? "ineffective" : "verified";
  }
  if (seen.when === "true") return "ineffective";
  if (seen.when === "unknown") return seen.now >= last ? "in_doubt" : null;
  // A node that has not come back is not healed, even if `when` is false.
  if (action.request.kind === "reboot" && !isMet && seen.status !== "online" && seen.status !== "maintenance") {
    return seen.now >= last ? "ineffective" : null;
  }
  return "verified";
}

/** What an action is expected to bring where its step does not say. Nothing shows that clients were disconnected. */
function meetsDefaultExpectation({ request }: Action, { when, status }: StepObservation): boolean {
  switch (request.kind) {
    case "reboot":
      return when === "false" && status === "online";
    case "quarantine":
      return status === "quarantined";
    case "disconnect":
      return when === "false";
    default:
      return request satisfies never;
  }
}

/** Evidence of a reboot, from before and after it was sent. Instants are on the service's clock. */
export interface RebootEvidence {
  readonly uptimeHoursBefore: number | null;
  readonly uptimeHoursNow: number | null;
  readonly rebootingSeen: boolean;
  /** When the record with the uptime of now was observed; null where the service's time is unknown. */
  readonly observedAt: EpochMs | null;
  readonly postedAt: EpochMs | null;
}

/**
 * What shows that a reboot took place. Uptime is in whole hours (spec, section 2.1), so that a boot is known to an hour:
 * it surely lies after the POST only where even the earliest that the hours allow does.
 */
export function rebootProof({ uptimeHoursBefore, uptimeHoursNow, ...evidence }: RebootEvidence): RebootProof {
  const { rebootingSeen, observedAt, postedAt } = evidence;
  // A record from before the POST knows nothing of it.
  const isAfter = observedAt === null || postedAt === null || observedAt > postedAt;
  const uptime = isAfter ? uptimeHoursNow : null;
  if (uptimeHoursBefore !== null && uptime !== null && uptime < uptimeHoursBefore) return "uptime_fell";
  if (rebootingSeen) return "rebooting_seen";
  if (uptime === null || observedAt === null || postedAt === null) return "none";
  const earliestBoot = observedAt - (uptime + 1) * HOUR_MS;
  return earliestBoot > postedAt ? "boot_after_post" : "none";
}
