import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../base/duration.ts";
import type { StepVerification } from "../../config/schema/policy.ts";
import type { NodeStatus } from "../../model/node.ts";
import type { Action, RebootProof } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { Verdict } from "../evaluation.ts";

/** What was observed about a node after an action was sent. */
export interface StepObservation {
  /** The journal's clock. */
  readonly now: EpochMs;
  /** Whether the node was observed after the step was sent. If not, the fields below are ignored. */
  readonly isFresh: boolean;
  readonly status: NodeStatus;
  /** Whether the node has reported since the step was sent, or may have. */
  readonly hasReported: boolean;
  /** The verdict of `when` on data that was observed after the step was sent. */
  readonly when: Verdict;
  /** The verdict of the step's `expect`, or null if it has none. */
  readonly expect: Verdict | null;
}

/** How a step ended. `in_doubt` means that the result is still unknown after the extended time. */
export type StepResult = "verified" | "ineffective" | "in_doubt";

/** Minimum extension of a step whose result is unknown when it times out. */
const EXTENSION_MS_MIN: DurationMs = 10 * MINUTE_MS;

/**
 * A step whose node is not observed stays in progress for this long after it timed out. Within this time, two walks of
 * even a large fleet on a small plan show whether the node has left the list.
 */
export const UNOBSERVED_MS_MAX: DurationMs = 6 * HOUR_MS;

/** Returns when a step times out (`end`), and when an unknown result becomes final (`last`). */
export function stepDeadlines(
  { sentAt }: Action,
  { withinMs }: StepVerification,
): { readonly end: EpochMs; readonly last: EpochMs } {
  const end = (sentAt ?? 0) + withinMs;
  return { end, last: end + Math.max(EXTENSION_MS_MIN, withinMs) };
}

/**
 * Returns the result of a step, or null if it is still in progress. The step ends as soon as its expectation is met, or
 * when it times out. It is then verified if `when` is false, and ineffective if `when` is true. An expectation that held
 * before the action says nothing about its effect, so the step does not end as ineffective before it times out.
 */
export function evaluateStep(action: Action, verify: StepVerification, seen: StepObservation): StepResult | null {
  const { end, last } = stepDeadlines(action, verify);
  if (!seen.isFresh) return seen.now >= Math.max(last, end + UNOBSERVED_MS_MAX) ? "in_doubt" : null;
  const heldBefore = action.expectedBefore === true && seen.when !== "false";
  const isMet = seen.expect === null ? meetsDefaultExpectation(action, seen) : seen.expect === "true" && !heldBefore;
  if (!isMet && seen.now < end) return null;
  if (action.request.kind === "quarantine" && seen.status === "quarantined") {
    // `when` may be unknown during a quarantine; the status shows that the step took effect.
    return seen.when === "true" ? "ineffective" : "verified";
  }
  if (seen.when === "true") return "ineffective";
  if (seen.when === "unknown") return seen.now >= last ? "in_doubt" : null;
  // A node that has not come back online is not healed, even if `when` is false.
  if (action.request.kind === "reboot" && !isMet && seen.status !== "online" && seen.status !== "maintenance") {
    return seen.now >= last ? "ineffective" : null;
  }
  return "verified";
}

/** Returns whether the default expectation of an action is met. No field shows that clients were disconnected. */
function meetsDefaultExpectation({ request }: Action, { when, status, hasReported }: StepObservation): boolean {
  switch (request.kind) {
    case "reboot":
      // The service may show a node as online while it reboots: the spec states no status (section 3.1).
      return when === "false" && status === "online" && hasReported;
    case "quarantine":
      return status === "quarantined";
    case "disconnect":
      return when === "false";
    default:
      return request satisfies never;
  }
}

/** Evidence of a reboot from before and after it was sent. Times are on the service's clock. */
export interface RebootEvidence {
  readonly uptimeHoursBefore: number | null;
  readonly uptimeHoursNow: number | null;
  /** Some services state an uptime of 0 for a node that is not online, so only that of an online node proves a boot. */
  readonly status: NodeStatus;
  readonly rebootingSeen: boolean;
  /** When `uptimeHoursNow` was observed, or null if the service's time is unknown. */
  readonly observedAt: EpochMs | null;
  readonly postedAt: EpochMs | null;
}

/**
 * Returns whether an uptime that fell from `before` to `now`, in hours, shows a boot within the last `elapsedMs`. It does
 * not if the list and the detail may merely round the hours differently: if `now` is a whole number, the uptime may be
 * up to an hour longer, and a node whose uptime is longer than `elapsedMs` booted before.
 */
export function isBootShown(before: number, now: number, elapsedMs: DurationMs): boolean {
  const comparable = Number.isInteger(now) ? Math.floor(before) : before;
  return now < comparable && now * HOUR_MS <= elapsedMs;
}

/**
 * Returns what proves that a reboot took place. Uptime is in whole hours (spec, section 2.1), so the time of the boot
 * is only known to the hour. It is after the POST only if the earliest possible time is.
 */
export function rebootProof({ uptimeHoursBefore, uptimeHoursNow, status, ...evidence }: RebootEvidence): RebootProof {
  const { rebootingSeen, observedAt, postedAt } = evidence;
  // A record from before the POST proves nothing.
  const isAfter = observedAt === null || postedAt === null || observedAt > postedAt;
  const uptime = isAfter && status === "online" ? uptimeHoursNow : null;
  const elapsedMs = observedAt === null || postedAt === null ? Number.POSITIVE_INFINITY : observedAt - postedAt;
  if (uptimeHoursBefore !== null && uptime !== null && isBootShown(uptimeHoursBefore, uptime, elapsedMs))
    return "uptime_fell";
  if (rebootingSeen) return "rebooting_seen";
  if (uptime === null || observedAt === null || postedAt === null) return "none";
  const earliestBoot = observedAt - (uptime + 1) * HOUR_MS;
  return earliestBoot > postedAt ? "boot_after_post" : "none";
}
