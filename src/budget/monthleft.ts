import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { type Limits, MONTH_ACTION_SHARE, pollingMonth } from "./limits.ts";

/** What is known of the plan's month. */
export interface MonthState {
  /** Calls counted in it so far. */
  readonly used: number;
  readonly leftMs: DurationMs;
}

/** One run of a collector. */
export interface LastRun {
  /** How long ago it began. */
  readonly sinceMs: DurationMs;
  /** Calls that it takes in all, and those that it made so far. */
  readonly calls: number;
  readonly made: number;
}

/** Of what is left of a month, actions are left half at most, however many there were of late. */
const ACTION_SHARE_MAX = 0.5;

/**
 * Calls of the month that polling may still make; null: the plan has no such cap. Actions are left their share of the
 * month, or what they come to if they go on as in the last day.
 */
export function pollingLeft(limits: Limits, { used, leftMs }: MonthState, actionsADay: number): number | null {
  const cap = limits.plan.callsPerMonth;
  if (cap === null) return null;
  const left = Math.max(0, cap - used);
  const forActions = Math.min((actionsADay * leftMs) / DAY_MS, left * ACTION_SHARE_MAX);
  return Math.max(0, Math.min(pollingMonth(cap) - used, left - Math.max(cap * MONTH_ACTION_SHARE, forActions)));
}

/**
 * Calls that a run has made ahead of a collector that is to make so many a minute: a walk of a large list spends at once
 * what its interval has for it. Counted back, the plan stays as it is before, during and after a run. What pays for time
 * beyond the month's end is not of this month.
 */
export function paidAhead({ sinceMs, made }: LastRun, callsPerMinute: number, { leftMs }: MonthState): number {
  const perMs = callsPerMinute / MINUTE_MS;
  return Math.max(0, Math.min(made - perMs * sinceMs, perMs * leftMs));
}
