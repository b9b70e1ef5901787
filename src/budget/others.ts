import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createForeign, type Foreign } from "./foreign.ts";
import { allowanceOf, CATEGORIES, type Category, floorOf, type Lane, type Limits, reserved } from "./limits.ts";
import type { Reading } from "./view.ts";

/** Limits that an answer may speak of: its category's, or the plan's over all of them. */
export const SCOPES = [...CATEGORIES, "plan"] as const;
export type Scope = (typeof SCOPES)[number];

/** What other users of the key do, by limit. */
export interface Others extends Readonly<Record<Scope, Foreign>> {
  /** What the headers were seen to speak of; null: nothing yet that tells. */
  speak: "category" | "plan" | null;
}

/** Nothing known yet. */
export const createOthers = (now: MonotonicMs): Others => ({
  node_management: createForeign(now),
  session_monitoring: createForeign(now),
  plan: createForeign(now),
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
export function othersDoubtful(others: Others, category: Category, countedBy: MonotonicMs, now: MonotonicMs): void {
  others[category].doubtful(countedBy, now);
  others.plan.doubtful(countedBy, now);
}

/** It was answered. */
export function othersAnswered(
  others: Others,
  limits: Limits,
  call: { readonly category: Category; readonly at: MonotonicMs },
  reading: Reading | null,
  now: MonotonicMs,
): void {
  const { category, at } = call;
  const scope = reading === null ? null : scopeOf(others, limits, category, reading.limit);
  const { windowMs } = limits.categories[category];
  others[category].answered(at, scope === category ? reading : null, windowMs, now);
  others.plan.answered(at, scope === "plan" ? reading : null, MINUTE_MS, now);
}

/** Calls a minute that others are expected to make under the plan, in all categories. */
export function expectedOfPlan(others: Others, limits: Limits, now: MonotonicMs): number {
  const ofCategories = CATEGORIES.reduce(
    (sum, category) => sum + (others[category].expected(now) * MINUTE_MS) / limits.categories[category].windowMs,
    0,
  );
  return Math.max(others.plan.expected(now), ofCategories);
}

/** However little is left to us, so many calls look in a window how things stand. */
export const LOOKS_A_WINDOW = 4;

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
 * The limit that a header speaks of; null: it may be either, and a call of ours in the other category would be taken
 * for one of others.
 */
function scopeOf(others: Others, limits: Limits, category: Category, stated: number): Scope | null {
  const own = limits.categories[category].requests;
  const ofPlan = limits.plan.requestsPerMinute;
  if (own !== ofPlan) {
    if (stated === own) others.speak = "category";
    if (stated === ofPlan) others.speak = "plan";
    return stated === ofPlan ? "plan" : category;
  }
  if (stated !== own) return category;
  if (others.speak !== null) return others.speak === "plan" ? "plan" : category;
  return null;
}
