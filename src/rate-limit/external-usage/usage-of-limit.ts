import type { DurationMs } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { externalFloorOf } from "../limits.ts";
import { OwnCalls } from "../own-calls.ts";
import type { LimitReading } from "../stated-limit.ts";
import { FixedWindowHypothesis } from "./fixed-window.ts";
import { UsageForecast } from "./forecast.ts";
import type { LimiterHypothesis, LimitStatement } from "./limiter-hypothesis.ts";
import { SlidingCounterHypothesis } from "./sliding-counter.ts";
import { SlidingWindowHypothesis } from "./sliding-window.ts";
import { TokenBucketHypothesis } from "./token-bucket.ts";

/** Minimum number of calls per window that observe the limit, even if external usage leaves fewer. */
export const OBSERVATIONS_PER_WINDOW = 4;
/**
 * A ruled-out hypothesis is restarted after this many windows, since the contradiction may have been a single fault.
 */
const RULED_OUT_WINDOWS = 10;
/** A restarted hypothesis counts after this many windows if no other one is left. */
const PROBATION_WINDOWS = 2;
/** It counts after this many windows in any case. A wrong one is usually ruled out again before. */
const PROBATION_WINDOWS_MAX = 20;
/** Own calls are kept for this many windows. */
const STORED_WINDOWS_MAX = 3;

const HYPOTHESES = [
  SlidingWindowHypothesis,
  FixedWindowHypothesis,
  SlidingCounterHypothesis,
  TokenBucketHypothesis,
] as const;

/** Creates the state of a hypothesis. */
const createCandidate = (kind: (typeof HYPOTHESES)[number]) => ({
  kind,
  hypothesis: new kind() as LimiterHypothesis,
  /** Proven and likely calls at the time at which it was started, to which its own counts are added. */
  provenBefore: 0,
  likelyBefore: 0,
  /** When it is restarted after it was ruled out, or null if it is not ruled out. */
  ruledOutUntil: null as MonotonicMs | null,
  /** From when a restarted hypothesis counts if no other one is left, and from when in any case. Null if it counts. */
  probation: null as { readonly atLeast: MonotonicMs; readonly atMost: MonotonicMs } | null,
});

type Candidate = ReturnType<typeof createCandidate>;

/** Calls by other users of the API key under one limit, derived from what responses state about it. */
export class ExternalUsageOfLimit {
  /** Our own calls under the limit. */
  readonly own = new OwnCalls();
  readonly #forecast = new UsageForecast();
  readonly #candidates = HYPOTHESES.map(createCandidate);
  #provenCalls = 0;
  #likelyCalls = 0;
  /** The limit as last stated. */
  #limit = 0;
  /** When the last call that stated it was answered. */
  #lastAnsweredAt = Number.NEGATIVE_INFINITY;
  /** The possible hypotheses that need the fewest external calls, all of the same kind, bucket or window. */
  #possible: readonly LimiterHypothesis[] = [];

  /** Records a response. `reading` is what it stated about this limit, or null. */
  recordAnswered(sentAt: MonotonicMs, reading: LimitReading | null, windowMs: DurationMs, now: MonotonicMs): void {
    if (reading !== null) {
      this.#limit = reading.limit;
      // If the call overlaps the last one, the service may have counted it earlier.
      if (sentAt >= this.#lastAnsweredAt) this.#update({ sentAt, answeredAt: now, ...reading, windowMs });
    }
    this.own.ended.add(now);
    this.own.forget(now - STORED_WINDOWS_MAX * windowMs);
  }

  /** Records that a call ended in doubt. The service counts it by `countedBy`, or never. */
  recordInDoubt(countedBy: MonotonicMs, windowMs: DurationMs, now: MonotonicMs): void {
    this.own.recordInDoubt(now, countedBy);
    this.own.forget(now - STORED_WINDOWS_MAX * windowMs);
  }

  /** Records a 429 because nothing of `limit` remained. */
  recordRejected(limit: number, windowMs: DurationMs, now: MonotonicMs): void {
    this.#limit = limit;
    this.#recordSpent(windowMs, now);
  }

  /**
   * Returns the external calls since the process started that are proven for every possible kind of limiter. Never
   * decreases.
   */
  provenCalls(): number {
    return this.#provenCalls;
  }

  /** Returns the proven calls and those that the limiter probably hid. Never decreases. */
  likelyCalls(): number {
    return Math.floor(this.#likelyCalls);
  }

  /** Returns the external calls that are proven for the current window, or 0 for a token bucket, which has none. */
  callsInWindow(now: MonotonicMs): number {
    if (this.#possible.length === 0 || this.isTokenBucket()) return 0;
    return Math.min(...this.#possible.map((hypothesis) => hypothesis.callsInWindow(now)));
  }

  /** Returns whether the limiter is a token bucket, as far as is known. */
  isTokenBucket(): boolean {
    return this.#possible[0]?.isTokenBucket ?? false;
  }

  /**
   * Returns whether the limiter is a sliding counter, as far as is known. The calls of its previous window come back
   * before the stated reset.
   */
  isSlidingCounter(): boolean {
    const isPossible = (kind: Candidate["kind"]) => this.#possible.some((hypothesis) => hypothesis instanceof kind);
    return isPossible(SlidingCounterHypothesis) && !isPossible(FixedWindowHypothesis);
  }

  /** Returns the external calls to expect per window, including a margin, or 0 if none. */
  expectedCalls(now: MonotonicMs): number {
    return Math.min(this.#limit, this.#forecast.expected(now));
  }

  /** Returns an upper bound of our own calls in the window length before `now`. */
  ownRecentCalls(windowMs: DurationMs, now: MonotonicMs): number {
    return this.own.sent.countBy(now) - this.own.ended.countBefore(now - windowMs);
  }

  /** Returns when our last call was sent; -Infinity if none was sent recently. */
  lastOwnCallAt(): MonotonicMs {
    return this.own.sent.last();
  }

  /**
   * Returns when our own calls in a window length will be fewer than `calls`, or when the next observation is due if
   * that is earlier. It is Infinity if a call in flight must be answered first.
   */
  ownCallsFewerThan(calls: number, windowMs: DurationMs, now: MonotonicMs): MonotonicMs {
    const lastToLeave = this.own.sent.countBy(now) - Math.max(0, calls - 1);
    if (lastToLeave <= this.own.ended.countBefore(now - windowMs)) return now;
    return Math.min(
      this.own.ended.nth(lastToLeave) + windowMs,
      this.lastOwnCallAt() + windowMs / OBSERVATIONS_PER_WINDOW,
    );
  }

  #update(statement: LimitStatement): void {
    const { answeredAt, windowMs } = statement;
    this.#lastAnsweredAt = answeredAt;
    for (const candidate of this.#candidates) this.#updateCandidate(candidate, statement);
    this.#weighCandidates(possibleCandidates(this.#candidates, answeredAt));
    if (this.#possible.length === 0) return;
    const calls = Math.max(
      ...this.#possible.flatMap((hypothesis) => [hypothesis.callsInWindow(answeredAt), hypothesis.lastWindowCalls]),
    );
    this.#forecast.record(calls, windowMs, answeredAt);
    // External calls used up the limit before we had made room for them, so some of them may have been rejected.
    const floor = externalFloorOf(this.#limit);
    const needed = this.ownRecentCalls(windowMs, answeredAt) + this.#forecast.expected(answeredAt);
    if (statement.remaining <= floor && needed > this.#limit + floor) this.#recordSpent(windowMs, answeredAt);
  }

  #updateCandidate(candidate: Candidate, statement: LimitStatement): void {
    const { answeredAt, windowMs } = statement;
    if (candidate.ruledOutUntil !== null) {
      if (answeredAt < candidate.ruledOutUntil) return;
      candidate.hypothesis = new candidate.kind();
      candidate.provenBefore = this.#provenCalls;
      candidate.likelyBefore = this.#likelyCalls;
      candidate.ruledOutUntil = null;
      candidate.probation = {
        atLeast: answeredAt + PROBATION_WINDOWS * windowMs,
        atMost: answeredAt + PROBATION_WINDOWS_MAX * windowMs,
      };
    }
    if (!candidate.hypothesis.update(statement, this.own)) {
      candidate.ruledOutUntil = answeredAt + RULED_OUT_WINDOWS * windowMs;
    }
  }

  /** Updates the counts. What all possible hypotheses agree on is proven. */
  #weighCandidates(possible: readonly Candidate[]): void {
    if (possible.length === 0) {
      this.#possible = [];
      return;
    }
    const provenBy = ({ provenBefore, hypothesis }: Candidate) => provenBefore + hypothesis.provenCalls;
    const likelyBy = ({ likelyBefore, hypothesis }: Candidate) =>
      likelyBefore + (hypothesis.provenCalls + hypothesis.hiddenCalls);
    const best = possible.reduce((least, candidate) => (provenBy(candidate) < provenBy(least) ? candidate : least));
    // Others need external calls only because they take the limiter for another one.
    this.#possible = possible
      .filter((candidate) => provenBy(candidate) <= provenBy(best))
      .map(({ hypothesis }) => hypothesis)
      .filter(({ isTokenBucket }) => isTokenBucket === best.hypothesis.isTokenBucket);
    this.#provenCalls = Math.max(this.#provenCalls, provenBy(best));
    this.#likelyCalls = Math.max(this.#likelyCalls, this.#provenCalls, Math.min(...possible.map(likelyBy)));
  }

  /**
   * Records that the limit is used up. All calls but ours are external. How many more calls others wanted is unknown,
   * so half of ours are counted as theirs.
   */
  #recordSpent(windowMs: DurationMs, now: MonotonicMs): void {
    this.#forecast.recordWindow(Math.max(0, this.#limit - this.ownRecentCalls(windowMs, now) / 2), windowMs, now);
  }
}

/**
 * Returns the candidates that are neither ruled out nor on probation. If there are none, ends the probation of those
 * that have passed it, and returns them.
 */
function possibleCandidates(candidates: readonly Candidate[], now: MonotonicMs): readonly Candidate[] {
  const possible = candidates.filter(({ ruledOutUntil }) => ruledOutUntil === null);
  const established = possible.filter(({ probation }) => probation === null || probation.atMost <= now);
  if (established.length > 0) return established;
  const passed = possible.filter(({ probation }) => probation!.atLeast <= now);
  for (const candidate of passed) candidate.probation = null;
  return passed;
}
