import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { OwnCalls } from "./owncalls.ts";
import { ROUNDING_MS } from "./view.ts";

/** What one answer stated of a limit, and when the service may have counted the call: from its sending to its answer. */
export interface Statement {
  readonly sentAt: MonotonicMs;
  readonly answeredAt: MonotonicMs;
  readonly limit: number;
  readonly remaining: number;
  /** When it says that the limit resets, rounded up by as much as its clock may hide; null: it says nothing of it. */
  readonly resetAt: MonotonicMs | null;
  readonly windowMs: DurationMs;
}

/**
 * A kind of limiter, taken for the service's own: what others must have called, if it is. The spec names none, so all
 * kinds are followed side by side. Each counts no call of others that its answers do not prove.
 */
export interface LimiterKind {
  /** Takes in a statement; false: a limiter of this kind would never have stated it. */
  read(statement: Statement, own: OwnCalls): boolean;
  /** Calls of others since the beginning. */
  total(): number;
  /** Calls of others in the window that it is, or in the last one's length. */
  inWindow(now: MonotonicMs): number;
  /** What the last whole window may have come to, where its end was not seen; 0: nothing beyond what was seen. */
  lastWindow(): number;
  /** Whether calls come back one by one, by time alone, and may be saved up beyond the limit. */
  readonly isBucket: boolean;
}

/** By so many calls a statement may miss what a kind expects before it is another kind: clocks are not exact. */
const SLIPS_MAX = 2;
/** By so much a window may begin before its time. */
const SLIP_MS: DurationMs = SECOND_MS;
/** What a window that went unseen is reckoned to have had more, at most, than was seen of it. */
const UNSEEN_MAX = 3;
/** Of what a full bucket hides, what is reckoned at most for each time that something shows. */
const HIDDEN_MAX = 8;

/**
 * A window that slides: what is left is the limit less the calls of the last window's length, whoever made them. What
 * was spent when it was first looked at may have been the process before this one: in the first window it is no others'.
 */
export function createSlidingKind(startedAt: MonotonicMs): LimiterKind {
  let total = 0;
  let inWindow = 0;
  let base: number | null = null;
  let readAt = startedAt;
  return {
    isBucket: false,
    total: () => total,
    inWindow: () => inWindow,
    lastWindow: () => 0,
    read({ sentAt, answeredAt, limit, remaining, windowMs }, own) {
      const spent = limit - remaining;
      const ownMin = own.endedBefore(sentAt) + 1 - own.sentBy(answeredAt - windowMs);
      if (spent - (ownMin - own.doubtfulAfter(sentAt - 2 * windowMs)) < -SLIPS_MAX) return false;
      const ownMax = own.sentBy(answeredAt) - own.endedBefore(sentAt - windowMs);
      base = sentAt - startedAt >= windowMs ? 0 : (base ?? Math.max(0, spent - ownMin));
      inWindow = Math.max(0, spent - ownMax - base);
      // A window's count, at every moment of a window, comes to the count of that window.
      total += (inWindow * Math.min(windowMs, answeredAt - readAt)) / windowMs;
      readAt = answeredAt;
      return true;
    },
  };
}

interface Span {
  readonly earliest: MonotonicMs;
  readonly latest: MonotonicMs;
}

/** A window that begins anew as a whole, when it was said to: what is left only falls until then. */
export function createFixedKind(): LimiterKind {
  let last: Statement | null = null;
  /** When the window began. */
  let began: Span | null = null;
  /** Of the first window: what was spent before it was first looked at, by whomever. */
  let base = 0;
  let inWindow = 0;
  let lastWindow = 0;
  let total = 0;
  /** By how much calls of others from one statement to the next were more than even ones would have been. */
  let atOnce = 0;

  /**
   * What others did after the last statement of a window went with it. As much is reckoned as in the rest of it, and it
   * may be more by what was seen to come at once.
   */
  function turn(next: Span, windowMs: DurationMs): void {
    const seenMs = last!.answeredAt - middleOf(began!);
    const unseenMs = Math.min(middleOf(next), middleOf(began!) + windowMs) - last!.answeredAt;
    const unseen = seenMs > 0 && unseenMs > 0 ? inWindow * Math.min(UNSEEN_MAX, unseenMs / seenMs) : 0;
    total += unseen;
    lastWindow = inWindow + Math.max(unseen, atOnce);
    atOnce = 0;
    inWindow = 0;
    began = next;
  }

  /** Follows windows that begin anew; false: one did that can't have, or something came back without one. */
  function follow(statement: Statement, own: OwnCalls): boolean {
    const { sentAt, remaining, windowMs } = statement;
    const span = spanOf(statement);
    if (began === null || last === null) {
      began = span;
      base = Math.max(0, statement.limit - remaining - (own.endedBefore(sentAt) + 1));
      return true;
    }
    if (span.earliest > began.latest) {
      if (span.latest < began.earliest + windowMs - SLIP_MS) return false;
      turn(span, windowMs);
      base = 0;
      return true;
    }
    if (span.latest < began.earliest) return false;
    began = { earliest: Math.max(began.earliest, span.earliest), latest: Math.min(began.latest, span.latest) };
    const ownMin = Math.max(1, own.endedBefore(sentAt) + 1 - own.sentBy(last.answeredAt));
    return remaining <= last.remaining - ownMin + SLIPS_MAX;
  }

  return {
    isBucket: false,
    total: () => total,
    inWindow: (now) => (began === null || last === null || now >= began.latest + last.windowMs ? 0 : inWindow),
    lastWindow: () => lastWindow,
    read(statement, own) {
      const { sentAt, answeredAt, limit, remaining } = statement;
      if (remaining >= limit || statement.resetAt === null) return false;
      // One that overlaps the last may have been counted before it.
      if (last !== null && sentAt < last.answeredAt) return true;
      const gapMs = last === null ? 0 : answeredAt - last.answeredAt;
      if (!follow(statement, own)) return false;
      last = statement;
      const ownMax = own.sentBy(answeredAt) - own.endedBefore(began!.earliest);
      const seen = limit - remaining - ownMax - base;
      const more = Math.max(0, seen - inWindow);
      total += more;
      inWindow += more;
      atOnce = Math.max(atOnce, more - (Math.max(inWindow, lastWindow) * gapMs) / statement.windowMs - 1);
      return true;
    },
  };
}

/** When the window of a statement began: its reset is cut to seconds, and so is the clock that it is counted from. */
function spanOf({ sentAt, answeredAt, resetAt, windowMs }: Statement): Span {
  const latest = resetAt! - windowMs;
  return { earliest: latest - (answeredAt - sentAt) - 2 * ROUNDING_MS, latest };
}

const middleOf = ({ earliest, latest }: Span): MonotonicMs => (earliest + latest) / 2;

/**
 * A bucket that fills evenly. What is left, with our own calls and less what flowed in, only falls, and by calls of
 * others alone. A full bucket hides calls: those that it made good by the time of the next answer. Where it shows one,
 * as many more are reckoned as hid in the time that it hides.
 */
export function createBucketKind(): LimiterKind {
  let last: Statement | null = null;
  /** The most that was left after a call of ours: the bucket holds that and the call. */
  let most = 0;
  /** Bounds of what is left, with our own calls and less what flowed in since the clock's beginning. */
  let low = 0;
  let high = 0;
  let total = 0;
  let recent: { at: MonotonicMs; calls: number }[] = [];

  return {
    isBucket: true,
    total: () => total,
    lastWindow: () => 0,
    inWindow: (now) => recent.reduce((sum, { at, calls }) => sum + (at > now - (last?.windowMs ?? 0) ? calls : 0), 0),
    read(statement, own) {
      const { sentAt, answeredAt, limit, remaining, windowMs } = statement;
      if (last !== null && sentAt < last.answeredAt) return true;
      const rate = limit / windowMs;
      const ownMin = own.endedBefore(sentAt) + 1;
      const ownMax = own.sentBy(answeredAt);
      const least = remaining + ownMin - rate * answeredAt;
      const below = remaining + 1 + ownMax - rate * sentAt;
      most = Math.max(most, remaining);
      const before = last;
      last = statement;
      if (before === null || before.limit !== limit || own.doubtfulAfter(before.sentAt) > 0) {
        [low, high] = [least, below];
        return true;
      }
      // The bucket can't have held more than it holds: a full one gives time to hide.
      const full = most + ownMin;
      const fullMs = Math.max(0, low + rate * sentAt - full) / rate;
      const calls = Math.floor(Math.min(low + rate * sentAt, full) - (remaining + 1 + ownMax)) + 1;
      low = Math.min(low, full - rate * answeredAt);
      if (calls > 0) {
        const gapMs = (sentAt + answeredAt - before.sentAt - before.answeredAt) / 2;
        const shownMs = Math.max(0, gapMs - fullMs) + 1 / rate;
        total += calls + Math.min(HIDDEN_MAX, Math.max(0, gapMs - shownMs) / shownMs);
        recent = recent.filter(({ at }) => at > answeredAt - windowMs);
        recent.push({ at: answeredAt, calls });
        [low, high] = [low - calls, high - calls];
      }
      if (least > high + SLIPS_MAX) return false;
      [low, high] = least > high ? [least, below] : [Math.max(low, least), Math.min(high, below)];
      return true;
    },
  };
}
