import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Ledger } from "./ledger.ts";
import { CATEGORIES, type Category, type Lane, pollingCallsPerWindow } from "./limits.ts";
import { ACTION_SHARE, type Pace, payForCall } from "./window-pace.ts";

/** Maximum of a learned limit, and its window. */
interface LimitBasis {
  /** Calls per window that are made without a learned limit. */
  readonly maximum: number;
  readonly windowMs: DurationMs;
}

/** Factor of one decrease if the call rate is close to what is allowed. */
const DECREASE_FACTOR = 0.9;
/** Minimum factor of one decrease, since a rejected burst says little about the allowed rate. */
const DECREASE_FACTOR_MIN = 0.5;
/** Number of calls after which one decrease is recovered. One 429 in this many calls is 0.25%. */
const CALLS_PER_CYCLE = 400;
/** After this time without a 429 the rate is known to be allowed, and the limit increases faster. */
const PROVEN_MS: DurationMs = HOUR_MS;
/** From then on the limit doubles in this time, so it is usually fully restored within two hours. */
const DOUBLING_MS: DurationMs = 10 * MINUTE_MS;
/**
 * Time without a 429 after which the limit is forgotten and bursts are allowed again. It is long because one burst may
 * cause hundreds of 429s.
 */
const FORGET_MS: DurationMs = 6 * HOUR_MS;
/**
 * Minimum limit, in calls per window, after 429s in a row, because an outage rather than the rate may have caused them.
 */
const UNANSWERED_CALLS_MIN = 1;
/** Minimum limit, in calls per window, which bounds the wait for a call to ten windows. */
const CALLS_MIN = 0.1;

/** Creates the state without a learned limit. */
export const createLearnedLimit = () => ({
  /** Calls per window at {@link changedAt}, from when on the limit grows; Infinity if there is no limit. */
  calls: Number.POSITIVE_INFINITY,
  /** When it was last decreased, or doubled after a success. */
  changedAt: Number.NEGATIVE_INFINITY,
  /** Whether a call has succeeded since the last decrease. */
  hasSucceeded: true,
  /**
   * The limit before decreases without a success in between, or 0 if there were none. Once calls succeed again, each
   * success doubles the limit until it is restored.
   */
  previousCalls: 0,
  /** Spaces calls evenly, since the gateway may allow no burst. */
  pace: { paidUntil: Number.NEGATIVE_INFINITY, actionsPaidUntil: Number.NEGATIVE_INFINITY } satisfies Pace,
});

/**
 * A limit that no header states, such as that of a gateway in front of the service. It is learned from 429s that
 * headers do not explain: each 429 decreases it by a factor, and time without one increases it again.
 */
export type LearnedLimit = ReturnType<typeof createLearnedLimit>;

/** Returns whether a limit was learned and not forgotten. */
export const hasLearnedLimit = ({ calls }: LearnedLimit): boolean => calls !== Number.POSITIVE_INFINITY;

/** Returns the learned limit in calls per window, at most the maximum of `basis`; Infinity if there is none. */
export function currentLearnedLimit(learned: LearnedLimit, basis: LimitBasis, now: MonotonicMs): number {
  if (!hasLearnedLimit(learned)) return learned.calls;
  const doublings = Math.max(0, now - learned.changedAt - PROVEN_MS) / DOUBLING_MS;
  return Math.min(basis.maximum, raisedLimit(learned, basis, now) * 2 ** doublings);
}

/**
 * Returns the limit after slow growth for at most {@link PROVEN_MS}. Each {@link CALLS_PER_CYCLE} calls recover one
 * decrease.
 */
function raisedLimit({ calls, changedAt }: LearnedLimit, { windowMs }: LimitBasis, now: MonotonicMs): number {
  const cycles = ((Math.min(now - changedAt, PROVEN_MS) / windowMs) * calls) / CALLS_PER_CYCLE;
  return calls * DECREASE_FACTOR ** -cycles;
}

/** A 429 that no header explains. */
interface UnexplainedRejection {
  readonly sentAt: MonotonicMs;
  /** Calls of the category in the last window. */
  readonly callsMade: number;
  /** When the last answered call of another category was sent. */
  readonly othersAnsweredAt: MonotonicMs;
}

/**
 * Decreases the limit after a 429. The 429s of concurrent calls decrease it once. So do 429s in a row, since the
 * backoff applies, unless calls of other categories succeed in between. A gateway that counts all categories together
 * and allows no burst rejects a category whose calls always follow those of another one.
 */
export function learnFromRejection(
  learned: LearnedLimit,
  rejection: UnexplainedRejection,
  basis: LimitBasis,
  now: MonotonicMs,
): void {
  if (rejection.sentAt < learned.changedAt) return;
  const limit = Math.min(basis.maximum, currentLearnedLimit(learned, basis, now));
  let calls: number;
  if (!learned.hasSucceeded) {
    if (rejection.othersAnsweredAt <= learned.changedAt) return;
    learned.previousCalls = Math.max(learned.previousCalls, limit);
    calls = Math.min(limit, Math.max(UNANSWERED_CALLS_MIN, limit * DECREASE_FACTOR_MIN));
  } else {
    learned.previousCalls = 0;
    if (!hasLearnedLimit(learned)) calls = limit * DECREASE_FACTOR;
    else if (now - learned.changedAt > PROVEN_MS)
      calls = Math.min(limit * DECREASE_FACTOR, raisedLimit(learned, basis, now));
    else calls = Math.max(limit * DECREASE_FACTOR_MIN, Math.min(limit, rejection.callsMade) * DECREASE_FACTOR);
  }
  learned.calls = Math.max(CALLS_MIN, calls);
  learned.changedAt = now;
  learned.hasSucceeded = false;
}

/** Records that a call sent at `sentAt` succeeded. Forgets the limit after {@link FORGET_MS} without a 429. */
export function learnFromAnswer(learned: LearnedLimit, sentAt: MonotonicMs, basis: LimitBasis, now: MonotonicMs): void {
  if (!hasLearnedLimit(learned) || sentAt < learned.changedAt) return;
  learned.hasSucceeded = true;
  const limit = currentLearnedLimit(learned, basis, now);
  if (now - learned.changedAt >= FORGET_MS) learned.calls = Number.POSITIVE_INFINITY;
  else if (limit < learned.previousCalls) {
    learned.calls = Math.min(learned.previousCalls, limit * 2);
    learned.changedAt = now;
  }
}

/** Returns when the learned limit allows the next call of `lane`; -Infinity if there is none. */
export function learnedLimitAvailableAt(learned: LearnedLimit, lane: Lane): MonotonicMs {
  if (!hasLearnedLimit(learned)) return Number.NEGATIVE_INFINITY;
  const { paidUntil, actionsPaidUntil } = learned.pace;
  return lane === "action" ? Math.max(paidUntil, actionsPaidUntil) : paidUntil;
}

/** Pays for a call. Actions also pay among themselves, so that polling continues. */
export function payLearnedLimit(learned: LearnedLimit, lane: Lane, basis: LimitBasis, now: MonotonicMs): void {
  if (!hasLearnedLimit(learned)) return;
  const costMs = basis.windowMs / currentLearnedLimit(learned, basis, now);
  const actionPace = { costMs: costMs / ACTION_SHARE, capacity: 1 };
  payForCall(learned.pace, { evenPace: { costMs, capacity: 1 }, actionPace }, lane, now);
}

/** Returns the maximum and the window of the learned limit of `category`. */
export const limitBasisOf = ({ limits }: Ledger, category: Category): LimitBasis => ({
  maximum: pollingCallsPerWindow(limits, category),
  windowMs: limits.categories[category].windowMs,
});

/** Returns the limit learned from 429s in `category`, in calls per window, or null if there is none. */
export function learnedLimitOf(ledger: Ledger, category: Category, now: MonotonicMs): number | null {
  const { learned } = ledger.categories[category];
  return hasLearnedLimit(learned) ? currentLearnedLimit(learned, limitBasisOf(ledger, category), now) : null;
}

/** Returns when the learned limits allow the next call. */
export function gatewayAvailableAt(ledger: Ledger, category: Category, lane: Lane): MonotonicMs {
  const availableAt = learnedLimitAvailableAt(ledger.categories[category].learned, lane);
  return hasGatewayLimit(ledger) ? Math.max(availableAt, ledger.gatewayPaidUntil) : availableAt;
}

/** Charges a call to the learned limits. */
export function payGatewayLimit(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): void {
  payLearnedLimit(ledger.categories[category].learned, lane, limitBasisOf(ledger, category), now);
  if (hasGatewayLimit(ledger))
    ledger.gatewayPaidUntil = Math.max(ledger.gatewayPaidUntil, now) + 1 / gatewayRate(ledger, now);
}

const hasGatewayLimit = ({ categories }: Ledger): boolean =>
  CATEGORIES.some((category) => hasLearnedLimit(categories[category].learned));

/** Returns the calls per millisecond that the learned limits allow over all categories. */
function gatewayRate(ledger: Ledger, now: MonotonicMs): number {
  return CATEGORIES.reduce((sum, category) => {
    const { maximum, windowMs } = limitBasisOf(ledger, category);
    return sum + (learnedLimitOf(ledger, category, now) ?? maximum) / windowMs;
  }, 0);
}
