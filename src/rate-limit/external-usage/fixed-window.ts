import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { type LimiterKind, SLIPS_MAX, type Statement } from "./limiter-hypothesis.ts";
import type { OwnCalls } from "./own-calls.ts";
import { ROUNDING_MS } from "../limit-headers.ts";

/** By so much a window may begin before its time. */
const SLIP_MS: DurationMs = SECOND_MS;
/** A reset may be stated so much later than a window from now: reset and Date are both rounded, and so is their difference. */
const RESET_SLIP_MS: DurationMs = 3 * ROUNDING_MS;
/** The end of a window that went unseen is reckoned to have gone on as the last part of it that was seen. */
const PARTS = 4;

/** When a window began: its reset is cut to seconds, and so is the clock that it is counted from. */
interface Span {
  readonly earliest: MonotonicMs;
  readonly latest: MonotonicMs;
}

/** Calls of others in the window, as they were seen at a moment. */
interface Sight {
  readonly at: MonotonicMs;
  readonly calls: number;
}

/** A window that begins anew as a whole, when it was said to: what is left only falls until then. */
export function createFixedKind(): LimiterKind {
  let last: Statement | null = null;
  let began: Span | null = null;
  /** Of the first window: what was spent before it was first looked at, by whomever. */
  let before = 0;
  /** The last part of a window up to the last statement, and what was seen just before that. */
  let sights: Sight[] = [];
  let lastWindow = 0;
  let proved = 0;
  let hidden = 0;

  const seen = (): number => sights.at(-1)?.calls ?? 0;

  /** What others did after the last statement of a window went with the window, unseen: not more than was left. */
  function turn(next: Span, windowMs: DurationMs): void {
    const first = sights[0]!;
    const { at, calls } = sights.at(-1)!;
    const endedAt = Math.min(middleOf(next), middleOf(began!) + windowMs);
    const seenMs = Math.max(windowMs / PARTS, at - first.at);
    const unseen = Math.min(last!.remaining, ((calls - first.calls) * Math.max(0, endedAt - at)) / seenMs);
    hidden += unseen;
    lastWindow = calls + unseen;
    begin(next);
  }

  function begin(span: Span): void {
    began = span;
    sights = [{ at: middleOf(span), calls: 0 }];
  }

  /** Follows windows that begin anew; false: one did that can't have, or something came back without one. */
  function follow(statement: Statement, own: OwnCalls): boolean {
    const { sentAt, remaining, windowMs } = statement;
    const span = spanOf(statement);
    if (began === null || last === null) {
      begin(span);
      const ownLeast = Math.max(0, own.endedBefore(sentAt) - own.sentBy(span.latest)) + 1;
      before = Math.max(0, statement.limit - remaining - ownLeast);
      return true;
    }
    if (span.earliest > began.latest) {
      if (span.latest < began.earliest + windowMs - SLIP_MS) return false;
      turn(span, windowMs);
      before = 0;
      return true;
    }
    if (span.latest < began.earliest) return false;
    began = { earliest: Math.max(began.earliest, span.earliest), latest: Math.min(began.latest, span.latest) };
    const ownSince = own.endedBefore(sentAt) - own.sentBy(last.answeredAt) - own.doubtfulAfter(last.sentAt);
    return remaining <= last.remaining - Math.max(0, ownSince) - 1 + SLIPS_MAX;
  }

  function see(at: MonotonicMs, calls: number, windowMs: DurationMs): void {
    proved += calls - seen();
    sights.push({ at, calls });
    sights = sights.slice(
      Math.max(
        0,
        sights.findLastIndex((sight) => sight.at <= at - windowMs / PARTS),
      ),
    );
  }

  return {
    isBucket: false,
    proved: () => proved,
    hidden: () => hidden,
    inWindow: (now) => (began === null || last === null || now >= began.latest + last.windowMs ? 0 : seen()),
    lastWindow: () => lastWindow,
    read(statement, own) {
      const { answeredAt, limit, remaining, windowMs } = statement;
      if (remaining >= limit || statement.resetAt === null) return false;
      if (statement.resetAt > answeredAt + windowMs + RESET_SLIP_MS) return false;
      if (!follow(statement, own)) return false;
      last = statement;
      const ownMost = own.sentBy(answeredAt) - own.endedBefore(began!.earliest);
      see(answeredAt, Math.max(seen(), limit - remaining - ownMost - before), windowMs);
      return true;
    },
  };
}

function spanOf({ sentAt, answeredAt, resetAt, windowMs }: Statement): Span {
  const latest = resetAt! - windowMs;
  return { earliest: latest - (answeredAt - sentAt) - 2 * ROUNDING_MS, latest };
}

const middleOf = ({ earliest, latest }: Span): MonotonicMs => (earliest + latest) / 2;
