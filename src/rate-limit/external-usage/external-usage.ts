import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createForeign, type Foreign, LOOKS_A_WINDOW } from "./usage-of-limit.ts";
import { allowanceOf, CATEGORIES, type Category, floorOf, type Lane, type Limits, reserved } from "../limits.ts";
import type { Reading } from "../limit-headers.ts";

/** Limits that an answer may speak of: its category's, or the plan's over all of them. */
export const SCOPES = [...CATEGORIES, "plan"] as const;
export type Scope = (typeof SCOPES)[number];

/** A call of ours, and when it went out. */
interface SentCall {
  readonly category: Category;
  readonly at: MonotonicMs;
}

/** What other users of the key do, by limit. */
export interface Others extends Readonly<Record<Scope, Foreign>> {
  /** What the headers were seen to speak of; null: nothing yet that tells. */
  speak: "category" | "plan" | null;
}

/** Nothing known yet. */
export const createOthers = (): Others => ({
  node_management: createForeign(),
  session_monitoring: createForeign(),
  plan: createForeign(),
  speak: null,
});

/** A call in `category` went out. */
export function othersSent(others: Others, category: Category, now: MonotonicMs): void {
  others[category].sent(now);
  others.plan.sent(now);
}

/** It never did, after all. */
export function othersUnsent(others: Others, category: Category, sentAt: MonotonicMs): void {
  others[category].unsent(sentAt);
  others.plan.unsent(sentAt);
}

/** It came to an end, and nobody knows whether the service counted it: if so, then by `countedBy`. */
export function othersDoubtful(
  others: Others,
  limits: Limits,
  category: Category,
  countedBy: MonotonicMs,
  now: MonotonicMs,
): void {
  others[category].doubtful(countedBy, limits.categories[category].windowMs, now);
  others.plan.doubtful(countedBy, MINUTE_MS, now);
}

/** It was answered. An answer without headers may come from something in front of the service, which counts nothing. */
export function othersAnswered(
  others: Others,
  limits: Limits,
  { category, at }: SentCall,
  reading: Reading | null,
  now: MonotonicMs,
): void {
  if (reading === null) {
    othersDoubtful(others, limits, category, now, now);
    return;
  }
  const scope = scopeOf(others, limits, category, reading.limit);
  const { windowMs } = limits.categories[category];
  // A limit larger than ours is of something wider: what is missing from it may be of other accounts, and of their months.
  const isOwn = scope === category && reading.limit <= limits.categories[category].requests;
  others[category].answered(at, isOwn ? reading : null, windowMs, now);
  others.plan.answered(at, scope === "plan" ? reading : null, MINUTE_MS, now);
}

/** It was refused. What the refusal says tells of others only where it names a limit that we know, and that is spent. */
export function othersRefused(
  others: Others,
  limits: Limits,
  { category }: SentCall,
  reading: Reading | null,
  now: MonotonicMs,
): void {
  othersDoubtful(others, limits, category, now, now);
  if (reading === null || reading.remaining > 0) return;
  const { requests, windowMs } = limits.categories[category];
  // Of a plan and a category that are as large, the plan is spent first.
  if (reading.limit === limits.plan.requestsPerMinute) others.plan.refused(reading.limit, MINUTE_MS, now);
  else if (reading.limit === requests) others[category].refused(reading.limit, windowMs, now);
}

/** Calls a minute that others are expected to make under the plan, in all categories. */
export function expectedOfPlan(others: Others, limits: Limits, now: MonotonicMs): number {
  const ofCategories = CATEGORIES.reduce(
    (sum, category) => sum + (others[category].expected(now) * MINUTE_MS) / limits.categories[category].windowMs,
    0,
  );
  return Math.max(others.plan.expected(now), ofCategories);
}

/** What asks to go. */
export interface Asking {
  readonly category: Category;
  readonly lane: Lane;
  /** So many calls are left, by what the service stated; null: it stated nothing. */
  readonly left: number | null;
}

/** When a call may go and still leave others what they are expected to need, under its category and the plan. */
export function yieldsUntil(others: Others, limits: Limits, asking: Asking, now: MonotonicMs): MonotonicMs {
  const { category, lane, left } = asking;
  const { requests, windowMs } = limits.categories[category];
  const ofPlan = limits.plan.requestsPerMinute;
  const inCategory = { limit: requests, reserve: limits.reserve, windowMs, expected: others[category].expected(now) };
  const inPlan = { limit: ofPlan ?? 0, reserve: limits.reserve, windowMs: MINUTE_MS };
  // A bucket that holds more than a window's calls has some for everybody.
  const isAmple = others[category].isBucket() && left !== null && left > requests;
  return Math.max(
    isAmple ? now : roomAt(others[category], inCategory, lane, now),
    ofPlan === null
      ? now
      : roomAt(others.plan, { ...inPlan, expected: expectedOfPlan(others, limits, now) }, lane, now),
  );
}

interface Room {
  readonly limit: number;
  readonly reserve: Share;
  readonly windowMs: DurationMs;
  readonly expected: number;
}

/** Our own calls of a window's length are to leave the others theirs, and to come evenly where those need much. */
function roomAt(
  foreign: Foreign,
  { limit, reserve, windowMs, expected }: Room,
  lane: Lane,
  now: MonotonicMs,
): MonotonicMs {
  const isMuch = expected > reserved(limit, reserve);
  if (expected === 0 || (foreign.isBucket() && !isMuch)) return now;
  const { polling, dip } = allowanceOf(limit, reserve, expected);
  if (lane === "action") return foreign.ownFewerThan(polling + Math.max(dip, floorOf(limit)), windowMs, now);
  const spaced = isMuch ? foreign.ownLast() + windowMs / Math.max(LOOKS_A_WINDOW, polling) : now;
  return Math.max(spaced, foreign.ownFewerThan(polling, windowMs, now));
}

/**
 * The limit that a header speaks of. Where that may be either, it is taken for the plan's until an answer tells: all our
 * calls are counted there, so that none of them is taken for one of others.
 */
export function scopeOf(others: Others, limits: Limits, category: Category, stated: number): Scope {
  const own = limits.categories[category].requests;
  const ofPlan = limits.plan.requestsPerMinute;
  if (own !== ofPlan && stated === own) others.speak = "category";
  if (own !== ofPlan && stated === ofPlan) others.speak = "plan";
  if (stated !== ofPlan) return category;
  return others.speak === "category" && own === ofPlan ? category : "plan";
}
