import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Lane } from "./limits.ts";
import { ACTION_SHARE, type Pace, payPace } from "./pacing.ts";

/**
 * A limit that no header states, such as that of a gateway in front of the service: learned from refusals that the
 * headers don't explain. A refusal decreases it by a factor; time without a refusal gives it back.
 */
export interface Learned {
  /** Calls a window right after the last refusal; Infinity: nothing was learned. */
  calls: number;
  /** When it was last decreased. */
  cutAt: MonotonicMs;
  /** Whether a call was answered since. */
  wasAnswered: boolean;
  /** The limit before decreases that no answer came between; it is back at once when calls are answered again. 0: none. */
  formerly: number;
  /** Calls are spaced evenly, with none back to back: the gateway may allow no burst. */
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
}

/** What a learned limit is measured against. */
export interface Ceiling {
  /** Calls a window that are made where nothing was learned. */
  readonly most: number;
  readonly windowMs: DurationMs;
}

/** Factor of one decrease, where the rate is close to what is allowed. */
const CUT = 0.9;
/** Least factor of a decrease: a burst that was refused says little about the rate. */
const CUT_MIN = 0.5;
/** Calls in which one decrease is given back: one refusal in so many is 0.25 %. */
const CALLS_A_CYCLE = 400;
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
export const createLearned = (): Learned => ({
  calls: Number.POSITIVE_INFINITY,
  cutAt: Number.NEGATIVE_INFINITY,
  wasAnswered: true,
  formerly: 0,
  pace: { paidAt: Number.NEGATIVE_INFINITY },
  actions: { paidAt: Number.NEGATIVE_INFINITY },
});

/** Whether anything was learned and not forgotten. */
export const hasLearned = ({ calls }: Learned): boolean => calls !== Number.POSITIVE_INFINITY;

/** Returns the learned limit, in calls a window, at most the ceiling's; Infinity: nothing was learned. */
export function learnedLimit(learned: Learned, ceiling: Ceiling, now: MonotonicMs): number {
  if (!hasLearned(learned)) return learned.calls;
  const doublings = Math.max(0, now - learned.cutAt - PROVEN_MS) / DOUBLING_MS;
  return Math.min(ceiling.most, provenLimit(learned, ceiling, now) * 2 ** doublings);
}

/** The limit as it grew slowly, by so much in a cycle of calls as one decrease takes away. */
function provenLimit({ calls, cutAt }: Learned, { windowMs }: Ceiling, now: MonotonicMs): number {
  const cycles = ((Math.min(now - cutAt, PROVEN_MS) / windowMs) * calls) / CALLS_A_CYCLE;
  return calls * CUT ** -cycles;
}

/** A refusal that no header explains. */
export interface Unexplained {
  readonly sentAt: MonotonicMs;
  /** Calls of the category made in the last window. */
  readonly made: number;
  /** When the last call of another category that was answered was sent. */
  readonly othersAnsweredAt: MonotonicMs;
}

/**
 * Decreases the limit after a refusal. Refusals of calls under way together decrease it once. So do refusals in a row,
 * where the backoff rules, unless other categories are answered meanwhile: a gateway that counts all categories together
 * and allows no burst refuses one that always calls right after another.
 */
export function learnRefused(learned: Learned, refusal: Unexplained, ceiling: Ceiling, now: MonotonicMs): void {
  if (refusal.sentAt < learned.cutAt) return;
  const limit = Math.min(ceiling.most, learnedLimit(learned, ceiling, now));
  const byRate = Math.min(limit, refusal.made) * CUT;
  let calls: number;
  if (!learned.wasAnswered) {
    if (refusal.othersAnsweredAt <= learned.cutAt) return;
    learned.formerly = Math.max(learned.formerly, limit);
    calls = Math.min(limit, Math.max(UNANSWERED_CALLS_MIN, limit * CUT_MIN));
  } else {
    learned.formerly = 0;
    if (!hasLearned(learned)) calls = limit * CUT;
    else if (now - learned.cutAt > PROVEN_MS) calls = Math.min(limit * CUT, provenLimit(learned, ceiling, now));
    else calls = Math.max(limit * CUT_MIN, byRate);
  }
  learned.calls = Math.max(CALLS_MIN, calls);
  learned.cutAt = now;
  learned.wasAnswered = false;
}

/** Takes in that a call sent at `sentAt` was not refused. Forgets a limit that refused nothing for long. */
export function learnAnswered(learned: Learned, sentAt: MonotonicMs, ceiling: Ceiling, now: MonotonicMs): void {
  if (!hasLearned(learned) || sentAt < learned.cutAt) return;
  learned.wasAnswered = true;
  const limit = learnedLimit(learned, ceiling, now);
  if (now - learned.cutAt >= FORGET_MS) learned.calls = Number.POSITIVE_INFINITY;
  else if (limit < learned.formerly) {
    learned.calls = Math.min(learned.formerly, limit * 2);
    learned.cutAt = now;
  }
}

/** Returns the first moment at which the learned limit lets a call go. */
export function learnedOpensAt(learned: Learned, lane: Lane): MonotonicMs {
  if (!hasLearned(learned)) return Number.NEGATIVE_INFINITY;
  const { pace, actions } = learned;
  return lane === "action" ? Math.max(pace.paidAt, actions.paidAt) : pace.paidAt;
}

/** Pays for a call. Actions take no more than their share, so that polling goes on. */
export function payLearned(learned: Learned, lane: Lane, ceiling: Ceiling, now: MonotonicMs): void {
  if (!hasLearned(learned)) return;
  const costMs = ceiling.windowMs / learnedLimit(learned, ceiling, now);
  payPace(learned.pace, { costMs, capacity: 1 }, now);
  if (lane === "action") payPace(learned.actions, { costMs: costMs / ACTION_SHARE, capacity: 1 }, now);
}
