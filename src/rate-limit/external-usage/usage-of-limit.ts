import type { DurationMs } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { LimitReading } from "../limit-headers.ts";
import { externalFloorOf } from "../limits.ts";
import { createFixedWindowHypothesis } from "./fixed-window.ts";
import { createUsageForecast } from "./forecast.ts";
import type { LimiterHypothesis, LimitStatement } from "./limiter-hypothesis.ts";
import { createOwnCalls } from "./own-calls.ts";
import { createSlidingWindowHypothesis } from "./sliding-window.ts";
import { createTokenBucketHypothesis } from "./token-bucket.ts";

/** What others do under one limit of our key, learned from what answers say is left of it. */
export interface ExternalUsageOfLimit {
  /** A call of ours went out. */
  recordSent(at: MonotonicMs): void;
  /** It never did, after all. */
  recordUnsent(at: MonotonicMs): void;
  /** It was answered, and so was counted; `reading`: what the answer stated of this limit, if it did. */
  recordAnswered(sentAt: MonotonicMs, reading: LimitReading | null, windowMs: DurationMs, now: MonotonicMs): void;
  /** It came to an end, and nobody knows whether it was counted: if so, then by `countedBy`. */
  recordInDoubt(countedBy: MonotonicMs, windowMs: DurationMs, now: MonotonicMs): void;
  /** It was refused because nothing of `limit` was left. */
  recordRejected(limit: number, windowMs: DurationMs, now: MonotonicMs): void;
  /** Calls of others since this process began that are proved, whichever kind of limiter it is. Never falls. */
  provenCalls(): number;
  /** The same with those that likely were there, and that the limiter hid. Never falls. */
  likelyCalls(): number;
  /** Calls of others that were proved to be in the window that it is. 0 for a bucket, which has none. */
  callsInWindow(now: MonotonicMs): number;
  /** Whether the limit is a bucket, as far as is known. */
  isTokenBucket(): boolean;
  /** Calls that others may make in a window, by what they did lately, and a margin; 0: there are none. */
  expectedCalls(now: MonotonicMs): number;
  /** Calls of ours in the window's length up to `now`, at most. */
  ownRecentCalls(windowMs: DurationMs, now: MonotonicMs): number;
  /** When our last call went out; -Infinity: none did of late. */
  lastOwnCallAt(): MonotonicMs;
  /**
   * When our own calls in a window's length are fewer than `calls`, or the last one is so long ago that another is due
   * for what its answer tells; Infinity: not before some are answered.
   */
  ownCallsFewerThan(calls: number, windowMs: DurationMs, now: MonotonicMs): MonotonicMs;
}

/** However little is left to us, so many calls look in a window how things stand. */
export const OBSERVATIONS_PER_WINDOW = 4;
/** A kind of limiter that was ruled out is tried again after so many windows: something odd may have happened once. */
const RULED_OUT_WINDOWS = 10;
/** Then it has to last for so many before what it says is believed, unless no other is left. */
const PROOF_WINDOWS = 2;
/** Own calls are kept for so many windows. */
const STORED_WINDOWS_MAX = 3;

/** One kind of limiter that the service may have. */
interface Hypothesis {
  readonly create: () => LimiterHypothesis;
  kind: LimiterHypothesis;
  /** What was known when it was taken up: it counts from there. */
  total: number;
  likely: number;
  /** Null: it is not ruled out. */
  ruledOutUntil: MonotonicMs | null;
  /** Of one that was taken up again; null: its word counts as any other's. */
  provedAt: MonotonicMs | null;
}

/** Nothing known yet. */
export function createExternalUsageOfLimit(): ExternalUsageOfLimit {
  const own = createOwnCalls();
  const forecast = createUsageForecast();
  const hypotheses = [createSlidingWindowHypothesis, createFixedWindowHypothesis, createTokenBucketHypothesis].map(
    (create): Hypothesis => ({ create, kind: create(), total: 0, likely: 0, ruledOutUntil: null, provedAt: null }),
  );
  let total = 0;
  let likely = 0;
  /** As it was last stated. */
  let limit = 0;
  /** When the last call that stated it was answered. */
  let lastAt = Number.NEGATIVE_INFINITY;
  /** Those that may be it, of the kind that needs the fewest calls of others, be it buckets or windows. */
  let hypothesesNow: readonly LimiterHypothesis[] = [];

  function read(statement: LimitStatement): void {
    const { sentAt, answeredAt, windowMs } = statement;
    // One that overlaps the last may have been counted before it.
    if (sentAt < lastAt) return;
    lastAt = answeredAt;
    for (const hypothesis of hypotheses) {
      if (hypothesis.ruledOutUntil !== null && hypothesis.ruledOutUntil <= answeredAt) {
        const provedAt = answeredAt + PROOF_WINDOWS * windowMs;
        Object.assign(hypothesis, { kind: hypothesis.create(), total, likely, ruledOutUntil: null, provedAt });
      }
      if (hypothesis.ruledOutUntil === null && !hypothesis.kind.update(statement, own)) {
        hypothesis.ruledOutUntil = answeredAt + RULED_OUT_WINDOWS * windowMs;
      }
    }
    weighHypotheses(mostLikely(hypotheses, answeredAt));
    if (hypothesesNow.length === 0) return;
    const calls = Math.max(
      ...hypothesesNow.flatMap((kind) => [kind.callsInWindow(answeredAt), kind.lastWindowCalls()]),
    );
    forecast.record(calls, windowMs, answeredAt);
    // They took all but the last before we had made room: some of theirs may have been refused.
    const isSpent = statement.remaining <= externalFloorOf(limit);
    const isCrowded = ownLately(windowMs, answeredAt) + forecast.expected(answeredAt) > limit + externalFloorOf(limit);
    if (isSpent && isCrowded) dropOldCalls(windowMs, answeredAt);
  }

  /** What all of them agree on is proved. */
  function weighHypotheses(possible: readonly Hypothesis[]): void {
    if (possible.length === 0) {
      hypothesesNow = [];
      return;
    }
    const totalOf = (hypothesis: Hypothesis) => hypothesis.total + hypothesis.kind.provenCalls();
    const least = possible.reduce((best, each) => (totalOf(each) < totalOf(best) ? each : best));
    hypothesesNow = possible.flatMap(({ kind }) => (kind.isTokenBucket === least.kind.isTokenBucket ? [kind] : []));
    total = Math.max(total, totalOf(least));
    likely = Math.max(likely, total, Math.min(...possible.map((each) => each.likely + likelyCallsOf(each.kind))));
  }

  /** Nothing is left: what isn't ours is theirs. What more they wanted nobody says, so half of ours is left to them. */
  function dropOldCalls(windowMs: DurationMs, now: MonotonicMs): void {
    forecast.restore(Math.max(0, limit - ownLately(windowMs, now) / 2), windowMs, now);
  }

  /** Calls of ours in a window's length, at most. */
  const ownLately = (windowMs: DurationMs, now: MonotonicMs): number =>
    own.sentBy(now) - own.endedBefore(now - windowMs);

  return {
    recordSent: (at) => own.recordSent(at),
    recordUnsent: (at) => own.recordUnsent(at),
    recordAnswered(sentAt, reading, windowMs, now) {
      if (reading !== null) {
        ({ limit } = reading);
        read({ sentAt, answeredAt: now, ...reading, windowMs });
      }
      own.recordEnd(now);
      own.forget(now - STORED_WINDOWS_MAX * windowMs);
    },
    recordInDoubt(countedBy, windowMs, now) {
      own.recordInDoubt(now, countedBy);
      own.forget(now - STORED_WINDOWS_MAX * windowMs);
    },
    recordRejected(stated, windowMs, now) {
      limit = stated;
      dropOldCalls(windowMs, now);
    },
    provenCalls: () => total,
    likelyCalls: () => Math.floor(likely),
    callsInWindow: (now) =>
      hypothesesNow.length === 0 || hypothesesNow[0]!.isTokenBucket
        ? 0
        : Math.min(...hypothesesNow.map((kind) => kind.callsInWindow(now))),
    isTokenBucket: () => hypothesesNow[0]?.isTokenBucket ?? false,
    expectedCalls: (now) => Math.min(limit, forecast.expected(now)),
    ownRecentCalls: ownLately,
    lastOwnCallAt: () => own.lastSent(),
    ownCallsFewerThan(calls, windowMs, now) {
      const leaving = own.sentBy(now) - Math.max(0, calls - 1);
      if (leaving <= own.endedBefore(now - windowMs)) return now;
      return Math.min(own.endOf(leaving) + windowMs, own.lastSent() + windowMs / OBSERVATIONS_PER_WINDOW);
    },
  };
}

/** Those that were never ruled out; where none is left, those that lasted since they were taken up again. */
function mostLikely(hypotheses: readonly Hypothesis[], now: MonotonicMs): readonly Hypothesis[] {
  const possible = hypotheses.filter(({ ruledOutUntil }) => ruledOutUntil === null);
  const first = possible.filter(({ provedAt }) => provedAt === null);
  if (first.length > 0) return first;
  const provenLongest = possible.filter(({ provedAt }) => provedAt! <= now);
  for (const hypothesis of provenLongest) hypothesis.provedAt = null;
  return provenLongest;
}

const likelyCallsOf = (kind: LimiterHypothesis): number => kind.provenCalls() + kind.hiddenCalls();
