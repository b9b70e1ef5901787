import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { EpochMs } from "../model/time.ts";
import { type Limits, MONTH_ACTION_SHARE, pollingCallsPerMonth } from "./limits.ts";

/** A month of the plan, from the day (UTC) on which the count of calls starts again to the next such day. */
export interface BillingMonth {
  /** Its first day (UTC), such as `2026-11-01`. */
  readonly firstDay: string;
  readonly startMs: EpochMs;
  readonly endMs: EpochMs;
}

/**
 * Returns the plan's month at `now`. `startsOn` is its first day, 1 to 31; in a shorter calendar month it is the last
 * day.
 */
export function billingMonthOf(now: EpochMs, startsOn: number): BillingMonth {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const first = now >= monthStart(year, month, startsOn) ? month : month - 1;
  const [startMs, endMs] = [monthStart(year, first, startsOn), monthStart(year, first + 1, startsOn)];
  return { firstDay: utcDay(startMs), startMs, endMs };
}

/** Key of the fact with the first day of the month in which the daemon counts its calls. */
export const MONTH_FACT = "month.first_day";

/** Returns when the month of a {@link MONTH_FACT} begins, or 0 if there is none or it can't be read. */
export const storedMonthStart = (fact: string | null): EpochMs => Date.parse(fact ?? "") || 0;

/**
 * Returns the plan's month in the state of a daemon, according to {@link MONTH_FACT}. It is not before that month, even if
 * the wall clock, `now`, is.
 */
export const storedMonthOf = (fact: string | null, now: EpochMs, startsOn: number): BillingMonth =>
  billingMonthOf(Math.max(now, storedMonthStart(fact)), startsOn);

/** Returns the day (UTC) of a time, such as `2026-11-21`. */
export const utcDay = (at: EpochMs): string => new Date(at).toISOString().slice(0, 10);

function monthStart(year: number, month: number, startsOn: number): EpochMs {
  const daysInMonth = (Date.UTC(year, month + 1, 1) - Date.UTC(year, month, 1)) / DAY_MS;
  return Date.UTC(year, month, Math.min(startsOn, daysInMonth));
}

/** Usage of the plan's current month. */
export interface MonthUsage {
  /** Calls counted in it so far. */
  readonly callsUsed: number;
  /** Time until it ends. */
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

/** Maximum share of the calls left in the month that is reserved for actions at their recent rate. */
const ACTION_SHARE_MAX = 0.5;

/**
 * Returns the calls that polling may still make in the month, or null if the plan has no such cap. Actions keep their
 * share of the month, or what they need at the rate of the last day, whichever is more.
 */
export function pollingCallsLeft(
  limits: Limits,
  { callsUsed, leftMs }: MonthUsage,
  actionsPerDay: number,
): number | null {
  const cap = limits.plan.callsPerMonth;
  if (cap === null) return null;
  const left = Math.max(0, cap - callsUsed);
  const expectedActions = Math.min((actionsPerDay * leftMs) / DAY_MS, left * ACTION_SHARE_MAX);
  const forActions = Math.max(cap * MONTH_ACTION_SHARE, expectedActions);
  return Math.max(0, Math.min(pollingCallsPerMonth(cap) - callsUsed, left - forActions));
}

/**
 * Returns the polling calls per minute that use up `callsLeft` by the end of the month. `paidAhead` is the number of its
 * calls that runs have made ahead of this rate.
 */
export const monthlyPace = (callsLeft: number, { leftMs }: MonthUsage, paidAhead: number): number =>
  (callsLeft + (callsLeft > 0 ? paidAhead : 0)) / Math.max(1, leftMs / MINUTE_MS);

/**
 * Returns the calls that a run has made ahead of `callsPerMinute`, since a walk of a large list spends the calls of its
 * whole interval at once. Adding them to the calls left keeps the plan constant before, during and after a run. Calls
 * for time after the end of the month don't count.
 */
export function callsPaidAhead(
  { sinceMs, callsMade }: LastRun,
  callsPerMinute: number,
  { leftMs }: MonthUsage,
): number {
  const perMs = callsPerMinute / MINUTE_MS;
  return Math.max(0, Math.min(callsMade - perMs * sinceMs, perMs * leftMs));
}

/** Number of calls that a run may make, which `collectors/run-pacing.ts` enforces. */
export interface RunBudget {
  /** Calls at the full rate that the limits allow. Further calls are made at the planned rate of the collector. */
  readonly callsAtOnce: number;
  /** Calls in total, after which the run ends incomplete. */
  readonly calls: number;
}

/**
 * Share of the polling calls left in the month that any run may make at once, since a list's length is unknown before
 * its first walk.
 */
const AT_ONCE_SHARE = 0.02;
/**
 * Share of the polling calls left in the month that any run may make in total, regardless of the total that a list
 * states.
 */
const RUN_SHARE_MAX = 0.1;
/** A run may make this many times the expected calls, since lists grow and missing records are looked up. */
const EXPECTED_CALLS_FACTOR = 2;
/** Calls that any run may make, since even a list of one page needs some lookups. */
const RUN_CALLS_MIN = 20;

/** Returns the budget of a run. `expected` are its planned calls; `left` is the result of {@link pollingCallsLeft}. */
export function runBudgetOf(expected: number, left: number | null): RunBudget {
  if (left === null) return { callsAtOnce: Number.POSITIVE_INFINITY, calls: Number.POSITIVE_INFINITY };
  return {
    callsAtOnce: Math.max(expected, RUN_CALLS_MIN, Math.floor(left * AT_ONCE_SHARE)),
    calls: Math.max(EXPECTED_CALLS_FACTOR * expected, RUN_CALLS_MIN, Math.floor(left * RUN_SHARE_MAX)),
  };
}
