import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { type Limits, MONTH_ACTION_SHARE, pollingCallsPerMonth } from "./limits.ts";

/** Usage of the plan's current month. */
export interface MonthUsage {
  /** Calls counted in it so far. */
  readonly callsUsed: number;
  readonly leftMs: DurationMs;
}

/** One run of a collector. */
export interface LastRun {
  /** How long ago it began. */
  readonly sinceMs: DurationMs;
  /** Expected calls of the whole run, and calls made so far. */
  readonly calls: number;
  readonly callsMade: number;
}

/** Maximum share of the calls left in the month that is kept for actions. */
const ACTION_SHARE_MAX = 0.5;

/**
 * Calls of the month that polling may still make; null: the plan has no such cap. Actions are left their share of the
 * month, or what they come to if they go on as in the last day.
 */
export function pollingCallsLeft(
  limits: Limits,
  { callsUsed: used, leftMs }: MonthUsage,
  actionsADay: number,
): number | null {
  const cap = limits.plan.callsPerMonth;
  if (cap === null) return null;
  const left = Math.max(0, cap - used);
  const forActions = Math.min((actionsADay * leftMs) / DAY_MS, left * ACTION_SHARE_MAX);
  return Math.max(0, Math.min(pollingCallsPerMonth(cap) - used, left - Math.max(cap * MONTH_ACTION_SHARE, forActions)));
}

/**
 * Calls that a run has made ahead of a collector that is to make so many a minute: a walk of a large list spends at once
 * what its interval has for it. Counted back, the plan stays as it is before, during and after a run. What pays for time
 * beyond the month's end is not of this month.
 */
export function callsPaidAhead(
  { sinceMs, callsMade }: LastRun,
  callsPerMinute: number,
  { leftMs }: MonthUsage,
): number {
  const perMs = callsPerMinute / MINUTE_MS;
  return Math.max(0, Math.min(callsMade - perMs * sinceMs, perMs * leftMs));
}

/** Number of calls that a run may make. */
export interface RunBudget {
  /** As fast as the rate limits let it; the rest at the planned rate of its collector, where the month keeps it from more. */
  readonly callsAtOnce: number;
  /** In total: the run then ends incomplete. */
  readonly calls: number;
}

/** Share of what polling has left of the month that any run may spend at once: a list's length is known after its first walk. */
const AT_ONCE_SHARE = 0.02;
/** Share of what polling has left of the month that any run may spend in all, whatever total a list claims. */
const RUN_SHARE_MAX = 0.1;
/** A run may come to so many times the calls that it was expected to take: lists grow, and records are looked up. */
const EXPECTED_CALLS_FACTOR = 2;
/** Calls that any run may make: a list of one page has some look-ups too. */
const RUN_CALLS_MIN = 20;

/** What a run may spend of the month. `expected`: calls that it is planned to take; `left`: as {@link pollingCallsLeft} says. */
export function runBudgetOf(expected: number, left: number | null): RunBudget {
  if (left === null) return { callsAtOnce: Number.POSITIVE_INFINITY, calls: Number.POSITIVE_INFINITY };
  return {
    callsAtOnce: Math.max(expected, RUN_CALLS_MIN, Math.floor(left * AT_ONCE_SHARE)),
    calls: Math.max(EXPECTED_CALLS_FACTOR * expected, RUN_CALLS_MIN, Math.floor(left * RUN_SHARE_MAX)),
  };
}
