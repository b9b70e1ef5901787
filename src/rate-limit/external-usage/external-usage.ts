import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { LimitReading } from "../limit-headers.ts";
import {
  allowanceOf,
  CATEGORIES,
  type Category,
  externalFloorOf,
  type Lane,
  type Limits,
  reservedCalls,
} from "../limits.ts";
import { createExternalUsageOfLimit, type ExternalUsageOfLimit, OBSERVATIONS_PER_WINDOW } from "./usage-of-limit.ts";

/** Limits that an answer may speak of: its category's, or the plan's over all of them. */
export const LIMIT_SCOPES = [...CATEGORIES, "plan"] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** A call of ours, and when it went out. */
interface SentCall {
  readonly category: Category;
  readonly at: MonotonicMs;
}

/** What other users of the key do, by limit. */
export interface ExternalUsage extends Readonly<Record<LimitScope, ExternalUsageOfLimit>> {
  /** What the headers were seen to speak of; null: nothing yet that tells. */
  statedScopes: "category" | "plan" | null;
}

/** Nothing known yet. */
export const createExternalUsage = (): ExternalUsage => ({
  node_management: createExternalUsageOfLimit(),
  session_monitoring: createExternalUsageOfLimit(),
  plan: createExternalUsageOfLimit(),
  statedScopes: null,
});

/** A call in `category` went out. */
export function recordCallSent(externalUsage: ExternalUsage, category: Category, now: MonotonicMs): void {
  externalUsage[category].recordSent(now);
  externalUsage.plan.recordSent(now);
}

/** It never did, after all. */
export function recordCallUnsent(externalUsage: ExternalUsage, category: Category, sentAt: MonotonicMs): void {
  externalUsage[category].recordUnsent(sentAt);
  externalUsage.plan.recordUnsent(sentAt);
}

/** It came to an end, and nobody knows whether the service counted it: if so, then by `countedBy`. */
export function recordCallInDoubt(
  externalUsage: ExternalUsage,
  limits: Limits,
  category: Category,
  countedBy: MonotonicMs,
  now: MonotonicMs,
): void {
  externalUsage[category].recordInDoubt(countedBy, limits.categories[category].windowMs, now);
  externalUsage.plan.recordInDoubt(countedBy, MINUTE_MS, now);
}

/** It was answered. An answer without headers may come from something in front of the service, which counts nothing. */
export function recordCallAnswered(
  externalUsage: ExternalUsage,
  limits: Limits,
  { category, at }: SentCall,
  reading: LimitReading | null,
  now: MonotonicMs,
): void {
  if (reading === null) {
    recordCallInDoubt(externalUsage, limits, category, now, now);
    return;
  }
  const scope = limitScopeOf(externalUsage, limits, category, reading.limit);
  const { windowMs } = limits.categories[category];
  // A limit larger than ours is of something wider: what is missing from it may be of other accounts, and of their months.
  const isOwn = scope === category && reading.limit <= limits.categories[category].requests;
  externalUsage[category].recordAnswered(at, isOwn ? reading : null, windowMs, now);
  externalUsage.plan.recordAnswered(at, scope === "plan" ? reading : null, MINUTE_MS, now);
}

/** It was refused. What the refusal says tells of others only where it names a limit that we know, and that is spent. */
export function recordCallRejected(
  externalUsage: ExternalUsage,
  limits: Limits,
  { category }: SentCall,
  reading: LimitReading | null,
  now: MonotonicMs,
): void {
  recordCallInDoubt(externalUsage, limits, category, now, now);
  if (reading === null || reading.remaining > 0) return;
  const { requests, windowMs } = limits.categories[category];
  // Of a plan and a category that are as large, the plan is spent first.
  if (reading.limit === limits.plan.requestsPerMinute) externalUsage.plan.recordRejected(reading.limit, MINUTE_MS, now);
  else if (reading.limit === requests) externalUsage[category].recordRejected(reading.limit, windowMs, now);
}

/** Calls a minute that others are expected to make under the plan, in all categories. */
export function expectedCallsOfPlan(externalUsage: ExternalUsage, limits: Limits, now: MonotonicMs): number {
  const ofCategories = CATEGORIES.reduce(
    (sum, category) =>
      sum + (externalUsage[category].expectedCalls(now) * MINUTE_MS) / limits.categories[category].windowMs,
    0,
  );
  return Math.max(externalUsage.plan.expectedCalls(now), ofCategories);
}

/** What asks to go. */
export interface CallRequest {
  readonly category: Category;
  readonly lane: Lane;
  /** So many calls are left, by what the service stated; null: it stated nothing. */
  readonly left: number | null;
}

/** When a call may go and still leave others what they are expected to need, under its category and the plan. */
export function availableBesideExternalUsage(
  externalUsage: ExternalUsage,
  limits: Limits,
  request: CallRequest,
  now: MonotonicMs,
): MonotonicMs {
  const { category, lane, left } = request;
  const { requests, windowMs } = limits.categories[category];
  const ofPlan = limits.plan.requestsPerMinute;
  const inCategory = {
    limit: requests,
    reserve: limits.reserve,
    windowMs,
    expected: externalUsage[category].expectedCalls(now),
  };
  const inPlan = { limit: ofPlan ?? 0, reserve: limits.reserve, windowMs: MINUTE_MS };
  // A bucket that holds more than a window's calls has some for everybody.
  const isAmple = externalUsage[category].isTokenBucket() && left !== null && left > requests;
  return Math.max(
    isAmple ? now : capacityAvailableAt(externalUsage[category], inCategory, lane, now),
    ofPlan === null
      ? now
      : capacityAvailableAt(
          externalUsage.plan,
          { ...inPlan, expected: expectedCallsOfPlan(externalUsage, limits, now) },
          lane,
          now,
        ),
  );
}

interface LimitCapacity {
  readonly limit: number;
  readonly reserve: Share;
  readonly windowMs: DurationMs;
  readonly expected: number;
}

/** Our own calls of a window's length are to leave the others theirs, and to come evenly where those need much. */
function capacityAvailableAt(
  usage: ExternalUsageOfLimit,
  { limit, reserve, windowMs, expected }: LimitCapacity,
  lane: Lane,
  now: MonotonicMs,
): MonotonicMs {
  const isMuch = expected > reservedCalls(limit, reserve);
  if (expected === 0 || (usage.isTokenBucket() && !isMuch)) return now;
  const { polling, actionReserve } = allowanceOf(limit, reserve, expected);
  if (lane === "action")
    return usage.ownCallsFewerThan(polling + Math.max(actionReserve, externalFloorOf(limit)), windowMs, now);
  const spaced = isMuch ? usage.lastOwnCallAt() + windowMs / Math.max(OBSERVATIONS_PER_WINDOW, polling) : now;
  return Math.max(spaced, usage.ownCallsFewerThan(polling, windowMs, now));
}

/**
 * The limit that a header speaks of. Where that may be either, it is taken for the plan's until an answer tells: all our
 * calls are counted there, so that none of them is taken for one of others.
 */
export function limitScopeOf(
  externalUsage: ExternalUsage,
  limits: Limits,
  category: Category,
  stated: number,
): LimitScope {
  const own = limits.categories[category].requests;
  const ofPlan = limits.plan.requestsPerMinute;
  if (own !== ofPlan && stated === own) externalUsage.statedScopes = "category";
  if (own !== ofPlan && stated === ofPlan) externalUsage.statedScopes = "plan";
  if (stated !== ofPlan) return category;
  return externalUsage.statedScopes === "category" && own === ofPlan ? category : "plan";
}
