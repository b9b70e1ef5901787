import { byName } from "../../base/by-name.ts";
import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { Ledger, Permit } from "../ledger.ts";
import { allowanceOf, CATEGORIES, type Category, externalFloorOf, type Lane, reservedCalls } from "../limits.ts";
import type { LimitReading } from "../stated-limit.ts";
import { ExternalUsageOfLimit, OBSERVATIONS_PER_WINDOW } from "./usage-of-limit.ts";

/** The limits that headers may state: the limit of a category, or the plan's over all categories. */
export const LIMIT_SCOPES = [...CATEGORIES, "plan"] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** Creates the state that tracks the calls by other users of the API key, by limit, without observations. */
export const createExternalUsage = () => ({
  ...byName(LIMIT_SCOPES, () => new ExternalUsageOfLimit()),
  /** Which kind of limit the headers state, or null if not known yet. */
  statedScope: null as "category" | "plan" | null,
});

/** Records that a call ended in doubt. The service counts it by `countedBy`, or never. */
export function recordCallInDoubt(
  { externalUsage, limits }: Ledger,
  category: Category,
  countedBy: MonotonicMs,
  now: MonotonicMs,
): void {
  externalUsage[category].recordInDoubt(countedBy, limits.categories[category].windowMs, now);
  externalUsage.plan.recordInDoubt(countedBy, MINUTE_MS, now);
}

/** Records a response. One without headers is in doubt, because a proxy in front of the service may have sent it. */
export function recordCallAnswered(
  ledger: Ledger,
  { category, at }: Permit,
  reading: LimitReading | null,
  now: MonotonicMs,
): void {
  if (reading === null) {
    recordCallInDoubt(ledger, category, now, now);
    return;
  }
  const { externalUsage, limits } = ledger;
  const scope = limitScopeOf(ledger, category, reading.limit);
  const { windowMs } = limits.categories[category];
  // A limit above the category's covers more than our account. Calls missing from it may not count in our month.
  const isOwn = scope === category && reading.limit <= limits.categories[category].requests;
  externalUsage[category].recordAnswered(at, isOwn ? reading : null, windowMs, now);
  externalUsage.plan.recordAnswered(at, scope === "plan" ? reading : null, MINUTE_MS, now);
}

/** Records a 429. It shows external usage only if it states a known limit of which nothing remains. */
export function recordCallRejected(
  ledger: Ledger,
  { category }: Permit,
  reading: LimitReading | null,
  now: MonotonicMs,
): void {
  recordCallInDoubt(ledger, category, now, now);
  if (reading === null || reading.remaining > 0) return;
  const { externalUsage, limits } = ledger;
  const { requests, windowMs } = limits.categories[category];
  // If the limits of plan and category are equal, the plan's is used up first.
  if (reading.limit === limits.plan.requestsPerMinute) externalUsage.plan.recordRejected(reading.limit, MINUTE_MS, now);
  else if (reading.limit === requests) externalUsage[category].recordRejected(reading.limit, windowMs, now);
}

/** Returns the external calls to expect per minute over all categories. */
export function expectedCallsOfPlan({ externalUsage, limits }: Ledger, now: MonotonicMs): number {
  const ofCategories = CATEGORIES.reduce(
    (sum, category) =>
      sum + (externalUsage[category].expectedCalls(now) * MINUTE_MS) / limits.categories[category].windowMs,
    0,
  );
  return Math.max(externalUsage.plan.expectedCalls(now), ofCategories);
}

/** Returns when a call may be sent so that category and plan leave enough for the expected external usage. */
export function availableBesideExternalUsage(
  ledger: Ledger,
  category: Category,
  lane: Lane,
  now: MonotonicMs,
): MonotonicMs {
  const { externalUsage, limits, categories } = ledger;
  const { requests, windowMs } = limits.categories[category];
  const { reserve } = limits;
  const { requestsPerMinute } = limits.plan;
  const usage = externalUsage[category];
  // A bucket that holds more calls than one window allows has enough for all users.
  const isAmple = usage.isTokenBucket() && (categories[category].stated.remainingAtLeast() ?? 0) > requests;
  const inCategory = { limit: requests, reserve, windowMs, expected: usage.expectedCalls(now) };
  const ofCategory = isAmple ? now : capacityAvailableAt(usage, inCategory, lane, now);
  if (requestsPerMinute === null) return Math.max(ofCategory, now);
  const expected = expectedCallsOfPlan(ledger, now);
  const inPlan = { limit: requestsPerMinute, reserve, windowMs: MINUTE_MS, expected };
  return Math.max(ofCategory, capacityAvailableAt(externalUsage.plan, inPlan, lane, now));
}

/** A limit that is shared with other users of the key. */
interface SharedLimit {
  readonly limit: number;
  readonly reserve: Share;
  readonly windowMs: DurationMs;
  /** Expected external calls per window. */
  readonly expected: number;
}

/**
 * Returns when our calls within the length of a window leave enough for others. If others need more than the reserve,
 * ours are also spaced evenly.
 */
function capacityAvailableAt(
  usage: ExternalUsageOfLimit,
  { limit, reserve, windowMs, expected }: SharedLimit,
  lane: Lane,
  now: MonotonicMs,
): MonotonicMs {
  const exceedsReserve = expected > reservedCalls(limit, reserve);
  if (expected === 0 || (usage.isTokenBucket() && !exceedsReserve)) return now;
  const { polling, actionReserve } = allowanceOf(limit, reserve, expected);
  if (lane === "action")
    return usage.ownCallsFewerThan(polling + Math.max(actionReserve, externalFloorOf(limit)), windowMs, now);
  const spaced = exceedsReserve ? usage.lastOwnCallAt() + windowMs / Math.max(OBSERVATIONS_PER_WINDOW, polling) : now;
  return Math.max(spaced, usage.ownCallsFewerThan(polling, windowMs, now));
}

/**
 * Returns which limit a header states, and remembers which kind of limit headers state. If the limits of plan and
 * category are equal, it is taken for the plan's until a response for another category shows which kind it is. All our
 * calls count there, so none of them is mistaken for an external one.
 */
export function limitScopeOf({ externalUsage, limits }: Ledger, category: Category, stated: number): LimitScope {
  const own = limits.categories[category].requests;
  const ofPlan = limits.plan.requestsPerMinute;
  if (own !== ofPlan && stated === own) externalUsage.statedScope = "category";
  if (own !== ofPlan && stated === ofPlan) externalUsage.statedScope = "plan";
  if (stated !== ofPlan) return category;
  return externalUsage.statedScope === "category" && own === ofPlan ? category : "plan";
}
