import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Lane } from "./limits.ts";
import { ACTION_SHARE, type Pace, payPace } from "./pace.ts";

/**
 * A limit that no header states, such as that of a gateway in front of the service: learned from refusals that the
 * headers don't explain. A refusal decreases it by a factor; time without a refusal gives it back.
 */
export interface Learned {
  /** Calls a window right after the last refusal; Infinity: nothing was learned. */
  calls: number;
  /** When it was last decreased. */
  cutAt: MonotonicMs;
  /** Whether a call was answered since: only then does another refusal say anything about the rate. */
  wasAnswered: boolean;
  /** Calls are spaced evenly, with none back to back: the gateway may allow no burst. */
  readonly pace: Pace;
  /** What actions pay among themselves, beside `pace`. */
  readonly actions: Pace;
}

/** Factor of one decrease, where the rate is close to what is allowed. */
const CUT = 0.9;
/** Least factor of a decrease: a burst that was refused says little about the rate. */
const CUT_MIN = 0.5;
/** Calls in which one decrease is given back: one refusal in so many is 0.25 %. */
const CALLS_A_CYCLE = 400;
/** After so long without a refusal the limit is taken to be gone: it is given back faster, and bursts are tried again. */
const CLEAN_MS: DurationMs = HOUR_MS;
/** From then on it doubles in this time. */
const DOUBLING_MS: DurationMs = 10 * MINUTE_MS;
/** Least limit, in calls a window: it bounds the wait for a call to ten windows. */
const CALLS_MIN = 0.1;

/** Creates the state in which nothing was learned. */
export const createLearned = (): Learned => ({
  calls: Number.POSITIVE_INFINITY,
  cutAt: Number.NEGATIVE_INFINITY,
  wasAnswered: true,
  pace: { paidAt: Number.NEGATIVE_INFINITY },
  actions: { paidAt: Number.NEGATIVE_INFINITY },
});

/** Returns the learned limit, in calls a window; Infinity: nothing was learned. */
export function learnedLimit({ calls, cutAt }: Learned, windowMs: DurationMs, now: MonotonicMs): number {
  if (calls === Number.POSITIVE_INFINITY) return calls;
  const cleanMs = Math.max(0, now - cutAt);
  const cycles = ((Math.min(cleanMs, CLEAN_MS) / windowMs) * calls) / CALLS_A_CYCLE;
  return calls * CUT ** -cycles * 2 ** (Math.max(0, cleanMs - CLEAN_MS) / DOUBLING_MS);
}

/**
 * Decreases the limit after a refusal of a call sent at `sentAt`. `most`: calls a window that are made without it;
 * `made`: calls made in the last window. A call that was sent before the last decrease, and refusals in a row, change
 * nothing: there the backoff rules.
 */
export function learnRefused(
  learned: Learned,
  { sentAt, most, made, windowMs }: { sentAt: MonotonicMs; most: number; made: number; windowMs: DurationMs },
  now: MonotonicMs,
): void {
  if (sentAt < learned.cutAt || !learned.wasAnswered) return;
  const isFirst = learned.calls === Number.POSITIVE_INFINITY;
  const limit = Math.min(most, learnedLimit(learned, windowMs, now));
  const least = isFirst ? limit * CUT : limit * CUT_MIN;
  learned.calls = Math.max(CALLS_MIN, least, Math.min(limit, made) * CUT);
  learned.cutAt = now;
  learned.wasAnswered = false;
}

/** Takes in that a call sent at `sentAt` was not refused. Forgets a limit that has not bound for long. */
export function learnAnswered(
  learned: Learned,
  { sentAt, most, windowMs }: { sentAt: MonotonicMs; most: number; windowMs: DurationMs },
  now: MonotonicMs,
): void {
  if (sentAt >= learned.cutAt) learned.wasAnswered = true;
  if (now - learned.cutAt >= CLEAN_MS && learnedLimit(learned, windowMs, now) >= most) {
    learned.calls = Number.POSITIVE_INFINITY;
  }
}

/** Returns the first moment at which the learned limit lets a call go. */
export function learnedOpensAt({ calls, pace, actions }: Learned, lane: Lane): MonotonicMs {
  if (calls === Number.POSITIVE_INFINITY) return Number.NEGATIVE_INFINITY;
  return lane === "action" ? Math.max(pace.paidAt, actions.paidAt) : pace.paidAt;
}

/** Pays for a call. Actions take no more than their share, so that polling goes on. */
export function payLearned(learned: Learned, lane: Lane, windowMs: DurationMs, now: MonotonicMs): void {
  const limit = learnedLimit(learned, windowMs, now);
  if (limit === Number.POSITIVE_INFINITY) return;
  const costMs = windowMs / limit;
  payPace(learned.pace, { costMs, capacity: 1 }, now);
  if (lane === "action") payPace(learned.actions, { costMs: costMs / ACTION_SHARE, capacity: 1 }, now);
}
