import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Lane } from "./limits.ts";
import { ACTION_SHARE, type Pace, payForCall } from "./pacing.ts";

/**
 * A limit that no header states, such as that of a gateway in front of the service: learned from refusals that the
 * headers don't explain. A refusal decreases it by a factor; time without a refusal gives it back.
 */
export interface LearnedLimit {
  /** Calls a window right after the last refusal; Infinity: nothing was learned. */
  calls: number;
  /** When it was last decreased. */
  decreasedAt: MonotonicMs;
  /** Whether a call was answered since. */
  hasSucceeded: boolean;
  /** The limit before decreases that no answer came between; it is back at once when calls are answered again. 0: none. */
  previousCalls: number;
  /** Calls are spaced evenly, with none back to back: the gateway may allow no burst. */
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
}

/** What a learned limit is measured against. */
export interface LimitBasis {
  /** Calls a window that are made where nothing was learned. */
  readonly most: number;
  readonly windowMs: DurationMs;
}

/** Factor of one decrease, where the rate is close to what is allowed. */
const DECREASE_FACTOR = 0.9;
/** Least factor of a decrease: a burst that was refused says little about the rate. */
const DECREASE_CALLS_MIN = 0.5;
/** Calls in which one decrease is given back: one refusal in so many is 0.25 %. */
const CALLS_PER_CYCLE = 400;
/** What went so long without a refusal is known to be allowed: from then on more is given back, and faster. */
const PROVEN_MS: DurationMs = HOUR_MS;
/** From then on the limit doubles in this time, so that all of it is back within two hours in most cases. */
const DOUBLING_MS: DurationMs = 10 * MINUTE_MS;
/** Bursts are allowed again so long after the last refusal: one burst may cost hundreds of refusals. */
const FORGET_MS: DurationMs = 6 * HOUR_MS;
/** Least limit after refusals in a row, in calls a window: all of them may come of an outage, not of the rate. */
const UNANSWERED_CALLS_MIN = 1;
/** Least limit, in calls a window: it bounds the wait for a call to ten windows. */
const CALLS_MIN = 0.1;

/** Creates the state in which nothing was learned. */
export const createLearnedLimit = (): LearnedLimit => ({
  calls: Number.POSITIVE_INFINITY,
  decreasedAt: Number.NEGATIVE_INFINITY,
  hasSucceeded: true,
  previousCalls: 0,
  pace: { paidUntil: Number.NEGATIVE_INFINITY },
  actions: { paidUntil: Number.NEGATIVE_INFINITY },
});

/** Whether anything was learned and not forgotten. */
export const hasLearnedLimit = ({ calls }: LearnedLimit): boolean => calls !== Number.POSITIVE_INFINITY;

/** Returns the learned limit, in calls a window, at most the ceiling's; Infinity: nothing was learned. */
export function currentLearnedLimit(learned: LearnedLimit, basis: LimitBasis, now: MonotonicMs): number {
  if (!hasLearnedLimit(learned)) return learned.calls;
  const doublings = Math.max(0, now - learned.decreasedAt - PROVEN_MS) / DOUBLING_MS;
  return Math.min(basis.most, raisedLimit(learned, basis, now) * 2 ** doublings);
}

/** The limit as it grew slowly, by so much in a cycle of calls as one decrease takes away. */
function raisedLimit({ calls, decreasedAt: cutAt }: LearnedLimit, { windowMs }: LimitBasis, now: MonotonicMs): number {
  const cycles = ((Math.min(now - cutAt, PROVEN_MS) / windowMs) * calls) / CALLS_PER_CYCLE;
  return calls * DECREASE_FACTOR ** -cycles;
}

/** A refusal that no header explains. */
export interface UnexplainedRejection {
  readonly sentAt: MonotonicMs;
  /** Calls of the category made in the last window. */
  readonly callsMade: number;
  /** When the last call of another category that was answered was sent. */
  readonly otherRoutesAnsweredAt: MonotonicMs;
}

/**
 * Decreases the limit after a refusal. Refusals of calls under way together decrease it once. So do refusals in a row,
 * where the backoff rules, unless other categories are answered meanwhile: a gateway that counts all categories together
 * and allows no burst refuses one that always calls right after another.
 */
export function learnFromRejection(
  learned: LearnedLimit,
  rejection: UnexplainedRejection,
  basis: LimitBasis,
  now: MonotonicMs,
): void {
  if (rejection.sentAt < learned.decreasedAt) return;
  const limit = Math.min(basis.most, currentLearnedLimit(learned, basis, now));
  const byRate = Math.min(limit, rejection.callsMade) * DECREASE_FACTOR;
  let calls: number;
  if (!learned.hasSucceeded) {
    if (rejection.otherRoutesAnsweredAt <= learned.decreasedAt) return;
    learned.previousCalls = Math.max(learned.previousCalls, limit);
    calls = Math.min(limit, Math.max(UNANSWERED_CALLS_MIN, limit * DECREASE_CALLS_MIN));
  } else {
    learned.previousCalls = 0;
    if (!hasLearnedLimit(learned)) calls = limit * DECREASE_FACTOR;
    else if (now - learned.decreasedAt > PROVEN_MS)
      calls = Math.min(limit * DECREASE_FACTOR, raisedLimit(learned, basis, now));
    else calls = Math.max(limit * DECREASE_CALLS_MIN, byRate);
  }
  learned.calls = Math.max(CALLS_MIN, calls);
  learned.decreasedAt = now;
  learned.hasSucceeded = false;
}

/** Takes in that a call sent at `sentAt` was not refused. Forgets a limit that refused nothing for long. */
export function learnFromAnswer(learned: LearnedLimit, sentAt: MonotonicMs, basis: LimitBasis, now: MonotonicMs): void {
  if (!hasLearnedLimit(learned) || sentAt < learned.decreasedAt) return;
  learned.hasSucceeded = true;
  const limit = currentLearnedLimit(learned, basis, now);
  if (now - learned.decreasedAt >= FORGET_MS) learned.calls = Number.POSITIVE_INFINITY;
  else if (limit < learned.previousCalls) {
    learned.calls = Math.min(learned.previousCalls, limit * 2);
    learned.decreasedAt = now;
  }
}

/** Returns the first moment at which the learned limit lets a call go. */
export function learnedLimitAvailableAt(learned: LearnedLimit, lane: Lane): MonotonicMs {
  if (!hasLearnedLimit(learned)) return Number.NEGATIVE_INFINITY;
  const { pace, actions } = learned;
  return lane === "action" ? Math.max(pace.paidUntil, actions.paidUntil) : pace.paidUntil;
}

/** Pays for a call. Actions take no more than their share, so that polling goes on. */
export function payLearnedLimit(learned: LearnedLimit, lane: Lane, basis: LimitBasis, now: MonotonicMs): void {
  if (!hasLearnedLimit(learned)) return;
  const costMs = basis.windowMs / currentLearnedLimit(learned, basis, now);
  payForCall(learned.pace, { costMs, capacity: 1 }, now);
  if (lane === "action") payForCall(learned.actions, { costMs: costMs / ACTION_SHARE, capacity: 1 }, now);
}
