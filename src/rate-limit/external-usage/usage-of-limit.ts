import type { DurationMs } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createBucketKind } from "./token-bucket.ts";
import { createFixedKind } from "./fixed-window.ts";
import { createForecast } from "./forecast.ts";
import type { LimiterKind, Statement } from "./limiter-hypothesis.ts";
import { floorOf } from "../limits.ts";
import { createOwnCalls } from "./own-calls.ts";
import { createSlidingKind } from "./sliding-window.ts";
import type { Reading } from "../limit-headers.ts";

/** What others do under one limit of our key, learned from what answers say is left of it. */
export interface Foreign {
  /** A call of ours went out. */
  sent(at: MonotonicMs): void;
  /** It never did, after all. */
  unsent(at: MonotonicMs): void;
  /** It was answered, and so was counted; `reading`: what the answer stated of this limit, if it did. */
  answered(sentAt: MonotonicMs, reading: Reading | null, windowMs: DurationMs, now: MonotonicMs): void;
  /** It came to an end, and nobody knows whether it was counted: if so, then by `countedBy`. */
  doubtful(countedBy: MonotonicMs, windowMs: DurationMs, now: MonotonicMs): void;
  /** It was refused because nothing of `limit` was left. */
  refused(limit: number, windowMs: DurationMs, now: MonotonicMs): void;
  /** Calls of others since this process began that are proved, whichever kind of limiter it is. Never falls. */
  total(): number;
  /** The same with those that likely were there, and that the limiter hid. Never falls. */
  likely(): number;
  /** Calls of others that were proved to be in the window that it is. 0 for a bucket, which has none. */
  inWindow(now: MonotonicMs): number;
  /** Whether the limit is a bucket, as far as is known. */
  isBucket(): boolean;
  /** Calls that others may make in a window, by what they did lately, and a margin; 0: there are none. */
  expected(now: MonotonicMs): number;
  /** Calls of ours in the window's length up to `now`, at most. */
  ownLately(windowMs: DurationMs, now: MonotonicMs): number;
  /** When our last call went out; -Infinity: none did of late. */
  ownLast(): MonotonicMs;
  /**
   * When our own calls in a window's length are fewer than `calls`, or the last one is so long ago that another is due
   * for what its answer tells; Infinity: not before some are answered.
   */
  ownFewerThan(calls: number, windowMs: DurationMs, now: MonotonicMs): MonotonicMs;
}

/** However little is left to us, so many calls look in a window how things stand. */
export const LOOKS_A_WINDOW = 4;
/** A kind of limiter that was ruled out is tried again after so many windows: something odd may have happened once. */
const WINDOWS_RULED_OUT = 10;
/** Then it has to last for so many before what it says is believed, unless no other is left. */
const WINDOWS_TO_PROVE = 2;
/** Own calls are kept for so many windows. */
const WINDOWS_KEPT = 3;

/** One kind of limiter that the service may have. */
interface Candidate {
  readonly create: () => LimiterKind;
  kind: LimiterKind;
  /** What was known when it was taken up: it counts from there. */
  total: number;
  likely: number;
  /** Null: it is not ruled out. */
  ruledOutUntil: MonotonicMs | null;
  /** Of one that was taken up again; null: its word counts as any other's. */
  provedAt: MonotonicMs | null;
}

/** Nothing known yet. */
export function createForeign(): Foreign {
  const own = createOwnCalls();
  const forecast = createForecast();
  const candidates = [createSlidingKind, createFixedKind, createBucketKind].map(
    (create): Candidate => ({ create, kind: create(), total: 0, likely: 0, ruledOutUntil: null, provedAt: null }),
  );
  let total = 0;
  let likely = 0;
  /** As it was last stated. */
  let limit = 0;
  /** When the last call that stated it was answered. */
  let lastAt = Number.NEGATIVE_INFINITY;
  /** Those that may be it, of the kind that needs the fewest calls of others, be it buckets or windows. */
  let kinds: readonly LimiterKind[] = [];

  function read(statement: Statement): void {
    const { sentAt, answeredAt, windowMs } = statement;
    // One that overlaps the last may have been counted before it.
    if (sentAt < lastAt) return;
    lastAt = answeredAt;
    for (const candidate of candidates) {
      if (candidate.ruledOutUntil !== null && candidate.ruledOutUntil <= answeredAt) {
        const provedAt = answeredAt + WINDOWS_TO_PROVE * windowMs;
        Object.assign(candidate, { kind: candidate.create(), total, likely, ruledOutUntil: null, provedAt });
      }
      if (candidate.ruledOutUntil === null && !candidate.kind.read(statement, own)) {
        candidate.ruledOutUntil = answeredAt + WINDOWS_RULED_OUT * windowMs;
      }
    }
    judge(believed(candidates, answeredAt));
    if (kinds.length === 0) return;
    const calls = Math.max(...kinds.flatMap((kind) => [kind.inWindow(answeredAt), kind.lastWindow()]));
    forecast.note(calls, windowMs, answeredAt);
    // They took all but the last before we had made room: some of theirs may have been refused.
    const isSpent = statement.remaining <= floorOf(limit);
    const isCrowded = ownLately(windowMs, answeredAt) + forecast.expected(answeredAt) > limit + floorOf(limit);
    if (isSpent && isCrowded) makeRoom(windowMs, answeredAt);
  }

  /** What all of them agree on is proved. */
  function judge(possible: readonly Candidate[]): void {
    if (possible.length === 0) {
      kinds = [];
      return;
    }
    const totalOf = (candidate: Candidate) => candidate.total + candidate.kind.proved();
    const least = possible.reduce((best, each) => (totalOf(each) < totalOf(best) ? each : best));
    kinds = possible.flatMap(({ kind }) => (kind.isBucket === least.kind.isBucket ? [kind] : []));
    total = Math.max(total, totalOf(least));
    likely = Math.max(likely, total, Math.min(...possible.map((each) => each.likely + likelyOf(each.kind))));
  }

  /** Nothing is left: what isn't ours is theirs. What more they wanted nobody says, so half of ours is left to them. */
  function makeRoom(windowMs: DurationMs, now: MonotonicMs): void {
    forecast.remember(Math.max(0, limit - ownLately(windowMs, now) / 2), windowMs, now);
  }

  /** Calls of ours in a window's length, at most. */
  const ownLately = (windowMs: DurationMs, now: MonotonicMs): number =>
    own.sentBy(now) - own.endedBefore(now - windowMs);

  return {
    sent: (at) => own.send(at),
    unsent: (at) => own.unsend(at),
    answered(sentAt, reading, windowMs, now) {
      if (reading !== null) {
        ({ limit } = reading);
        read({ sentAt, answeredAt: now, ...reading, windowMs });
      }
      own.end(now);
      own.forget(now - WINDOWS_KEPT * windowMs);
    },
    doubtful(countedBy, windowMs, now) {
      own.endInDoubt(now, countedBy);
      own.forget(now - WINDOWS_KEPT * windowMs);
    },
    refused(stated, windowMs, now) {
      limit = stated;
      makeRoom(windowMs, now);
    },
    total: () => total,
    likely: () => Math.floor(likely),
    inWindow: (now) =>
      kinds.length === 0 || kinds[0]!.isBucket ? 0 : Math.min(...kinds.map((kind) => kind.inWindow(now))),
    isBucket: () => kinds[0]?.isBucket ?? false,
    expected: (now) => Math.min(limit, forecast.expected(now)),
    ownLately,
    ownLast: () => own.lastSent(),
    ownFewerThan(calls, windowMs, now) {
      const leaving = own.sentBy(now) - Math.max(0, calls - 1);
      if (leaving <= own.endedBefore(now - windowMs)) return now;
      return Math.min(own.endOf(leaving) + windowMs, own.lastSent() + windowMs / LOOKS_A_WINDOW);
    },
  };
}

/** Those that were never ruled out; where none is left, those that lasted since they were taken up again. */
function believed(candidates: readonly Candidate[], now: MonotonicMs): readonly Candidate[] {
  const possible = candidates.filter(({ ruledOutUntil }) => ruledOutUntil === null);
  const first = possible.filter(({ provedAt }) => provedAt === null);
  if (first.length > 0) return first;
  const lasting = possible.filter(({ provedAt }) => provedAt! <= now);
  for (const candidate of lasting) candidate.provedAt = null;
  return lasting;
}

const likelyOf = (kind: LimiterKind): number => kind.proved() + kind.hidden();
