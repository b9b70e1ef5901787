import type { DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { MonotonicMs } from "../model/time.ts";
import {
  createBucketKind,
  createFixedKind,
  createSlidingKind,
  type LimiterKind,
  type Statement,
} from "./limiterkind.ts";
import { createOwnCalls } from "./owncalls.ts";
import type { Reading } from "./view.ts";

/** What others do under one limit of our key, learned from what answers say is left of it. */
export interface Foreign {
  /** A call of ours went out. */
  sent(at: MonotonicMs): void;
  /** It never did, after all. */
  unsent(at: MonotonicMs): void;
  /** It was answered, and the answer stated the limit; null: it did not. */
  answered(sentAt: MonotonicMs, reading: Reading | null, windowMs: DurationMs, now: MonotonicMs): void;
  /** It came to an end, and may be counted until `countedBy`. */
  doubtful(countedBy: MonotonicMs, now: MonotonicMs): void;
  /** Calls of others since this process began: as many as are certain, and never fewer than before. */
  total(): number;
  /** Calls of others that are surely in the window that it is. 0 for a bucket, which has none. */
  inWindow(now: MonotonicMs): number;
  /** Whether the limit is a bucket, as far as is known. */
  isBucket(): boolean;
  /** Calls that others may make in a window, by what they did lately, and a margin; 0: there are none. */
  expected(now: MonotonicMs): number;
  /** When our last call went out; -Infinity: none did of late. */
  ownLast(): MonotonicMs;
  /**
   * When our own calls in a window's length are fewer than `calls`, or the last one is so long ago that another is due
   * for what its answer tells; Infinity: not before some are answered.
   */
  ownFewerThan(calls: number, windowMs: DurationMs, now: MonotonicMs): MonotonicMs;
}

/** Others are expected to do again what they did in any of so many windows. */
const WINDOWS_REMEMBERED = 5;
/** Beyond what they did, others may do so much more … */
const MARGIN: Share = 0.1;
/** … and so many calls. */
const MARGIN_CALLS = 1;
/** Where others do more than they ever did, they are taken to go on as in the last part of a window. */
const TREND_PARTS = 4;
/** Counts are kept for the trend by so many parts of a window. */
const PARTS_NOTED = 60;
/** A kind of limiter that was ruled out is tried again after so many windows: it may be that something odd happened once. */
const WINDOWS_RULED_OUT = 10;
/** It has to last for so many before what it says is believed. */
const WINDOWS_TO_PROVE = 2;
/** Own calls are kept for so many windows. */
const WINDOWS_KEPT = 3;

interface Candidate {
  readonly create: (at: MonotonicMs) => LimiterKind;
  kind: LimiterKind;
  /** What was known in all when it was taken up. */
  base: number;
  /** Null: it is not ruled out. */
  ruledOutUntil: MonotonicMs | null;
  /** One that was taken up again counts only where no other is left, and once it has lasted; null: it was not. */
  isProvedAt: MonotonicMs | null;
}

/** Nothing known yet. */
export function createForeign(startedAt: MonotonicMs): Foreign {
  const own = createOwnCalls();
  const candidates: Candidate[] = [createSlidingKind, createFixedKind, createBucketKind].map((create) => ({
    kind: create(startedAt),
    create,
    base: 0,
    ruledOutUntil: null,
    isProvedAt: null,
  }));
  const peaks = createPeaks();
  let total = 0;
  let limit = 0;
  /** The kinds that the service may have. */
  let kinds: readonly LimiterKind[] = [];
  /** Whether the one of them that needs the fewest calls of others is a bucket. */
  let isBucket = false;

  function rule(now: MonotonicMs): void {
    const alive = candidates.filter(({ ruledOutUntil }) => ruledOutUntil === null);
    const first = alive.filter(({ isProvedAt }) => isProvedAt === null);
    const pool = first.length > 0 ? first : alive.filter(({ isProvedAt }) => isProvedAt! <= now);
    let least = Number.POSITIVE_INFINITY;
    for (const candidate of pool) {
      candidate.isProvedAt = null;
      const needed = candidate.base + candidate.kind.total();
      if (needed < least) isBucket = candidate.kind.isBucket;
      least = Math.min(least, needed);
    }
    if (pool.length > 0) total = Math.max(total, least);
    const kindsAlike = pool.filter(({ kind }) => kind.isBucket === isBucket);
    kinds = kindsAlike.map(({ kind }) => kind);
  }

  function read(statement: Statement): void {
    const { answeredAt, windowMs } = statement;
    for (const candidate of candidates) {
      if (candidate.ruledOutUntil !== null && candidate.ruledOutUntil <= answeredAt) {
        const isProvedAt = answeredAt + WINDOWS_TO_PROVE * windowMs;
        Object.assign(candidate, { kind: candidate.create(answeredAt), base: total, ruledOutUntil: null, isProvedAt });
      }
      if (candidate.ruledOutUntil === null && !candidate.kind.read(statement, own)) {
        candidate.ruledOutUntil = answeredAt + WINDOWS_RULED_OUT * windowMs;
      }
    }
    rule(answeredAt);
    const counts = kinds.map((kind) => kind.inWindow(answeredAt));
    const lasts = kinds.map((kind) => kind.lastWindow());
    if (kinds.length > 0) peaks.note(Math.max(...counts), Math.max(...lasts), windowMs, answeredAt);
  }

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
    doubtful: (countedBy, now) => own.endInDoubt(now, countedBy),
    total: () => Math.floor(total),
    inWindow: (now) =>
      isBucket || kinds.length === 0 ? 0 : Math.floor(Math.min(...kinds.map((kind) => kind.inWindow(now)))),
    isBucket: () => isBucket && kinds.length > 0,
    expected(now) {
      const most = peaks.most(now);
      return most < 1 ? 0 : Math.min(limit, Math.ceil(withMargin(most)));
    },
    ownLast: () => own.lastSent(),
    ownFewerThan(calls, windowMs, now) {
      const leaving = own.sentBy(now) - Math.max(0, calls - 1);
      if (leaving <= own.endedBefore(now - windowMs)) return now;
      return Math.min(own.endOf(leaving), own.lastSent() + windowMs / TREND_PARTS - windowMs) + windowMs;
    },
  };
}

const withMargin = (calls: number): number => calls * (1 + MARGIN) + MARGIN_CALLS;

/** The most that was seen in a window lately, and what it grows to where it never was as much. */
function createPeaks() {
  let windows: { readonly index: number; most: number }[] = [];
  /** The least count of each part of a window that was looked at: those of the last while, and one before them. */
  let parts: { readonly index: number; readonly at: MonotonicMs; least: number }[] = [];
  let trend = { most: 0, until: Number.NEGATIVE_INFINITY };
  let length: DurationMs = 1;

  /** What the count grows to within a window's length, at the pace of the last while. */
  function outlook(count: number, at: MonotonicMs): number {
    const whileMs = length / TREND_PARTS;
    const index = Math.floor((at * PARTS_NOTED) / length);
    if (parts.at(-1)?.index !== index) {
      const old = parts.filter((part) => part.at <= at - whileMs);
      parts = [...old.slice(-1), ...parts.slice(old.length), { index, at, least: count }];
    }
    const last = parts.at(-1)!;
    last.least = Math.min(last.least, count);
    const least = parts.reduce((lower, part) => (part.least <= lower.least ? part : lower));
    const elapsed = Math.min(length, Math.max(whileMs, at - least.at));
    return count + ((count - least.least) * (length - elapsed)) / elapsed;
  }

  return {
    note(count: number, countOfLast: number, windowMs: DurationMs, at: MonotonicMs): void {
      length = windowMs;
      const index = Math.floor(at / windowMs);
      if (windows.at(-1)?.index !== index) {
        windows = windows.filter((each) => each.index >= index - WINDOWS_REMEMBERED);
        windows.push({ index, most: 0 });
      }
      const current = windows.at(-1)!;
      const before = windows.reduce((most, each) => (each === current ? most : Math.max(most, each.most)), 0);
      current.most = Math.max(current.most, count, countOfLast);
      const most = outlook(count, at);
      if (count > withMargin(before) && most > count) trend = { most, until: at + windowMs / TREND_PARTS };
      else if (at >= trend.until) trend = { most: 0, until: at };
    },
    most(now: MonotonicMs): number {
      const oldest = Math.floor(now / length) - WINDOWS_REMEMBERED;
      const seen = windows.reduce((most, each) => (each.index >= oldest ? Math.max(most, each.most) : most), 0);
      // It ends with what an answer says, for others go on while we wait.
      return now < trend.until + length ? Math.max(seen, trend.most) : seen;
    },
  };
}
