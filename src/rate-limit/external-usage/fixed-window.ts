import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { ROUNDING_MS } from "../limit-headers.ts";
import { type LimiterHypothesis, type LimitStatement, MISMATCHES_MAX } from "./limiter-hypothesis.ts";
import type { OwnCalls } from "./own-calls.ts";

/** By so much a window may begin before its time. */
const CLOCK_SLIP_MS: DurationMs = SECOND_MS;
/** A reset may be stated so much later than a window from now: reset and Date are both rounded, and so is their difference. */
const RESET_SLIP_MS: DurationMs = 3 * ROUNDING_MS;
/** The end of a window that went unseen is reckoned to have gone on as the last part of it that was seen. */
const OBSERVATIONS_PER_WINDOW = 4;

/** When a window began: its reset is cut to seconds, and so is the clock that it is counted from. */
interface StartRange {
  readonly earliest: MonotonicMs;
  readonly latest: MonotonicMs;
}

/** Calls of others in the window, as they were seen at a moment. */
interface Observation {
  readonly at: MonotonicMs;
  readonly calls: number;
}

/** A window that begins anew as a whole, when it was said to: what is left only falls until then. */
export function createFixedWindowHypothesis(): LimiterHypothesis {
  let last: LimitStatement | null = null;
  let began: StartRange | null = null;
  /** Of the first window: what was spent before it was first looked at, by whomever. */
  let before = 0;
  /** The last part of a window up to the last statement, and what was seen just before that. */
  let observations: Observation[] = [];
  let lastWindow = 0;
  let proved = 0;
  let hidden = 0;

  const seen = (): number => observations.at(-1)?.calls ?? 0;

  /** What others did after the last statement of a window went with the window, unseen: not more than was left. */
  function endWindow(next: StartRange, windowMs: DurationMs): void {
    const first = observations[0]!;
    const { at, calls } = observations.at(-1)!;
    const endedAt = Math.min(middle(next), middle(began!) + windowMs);
    const seenMs = Math.max(windowMs / OBSERVATIONS_PER_WINDOW, at - first.at);
    const unseenMs = Math.min(last!.remaining, ((calls - first.calls) * Math.max(0, endedAt - at)) / seenMs);
    hidden += unseenMs;
    lastWindow = calls + unseenMs;
    begin(next);
  }

  function begin(span: StartRange): void {
    began = span;
    observations = [{ at: middle(span), calls: 0 }];
  }

  /** Follows windows that begin anew; false: one did that can't have, or something came back without one. */
  function recordStart(statement: LimitStatement, own: OwnCalls): boolean {
    const { sentAt, remaining, windowMs } = statement;
    const span = startRangeOf(statement);
    if (began === null || last === null) {
      begin(span);
      const ownLeast = Math.max(0, own.endedBefore(sentAt) - own.sentBy(span.latest)) + 1;
      before = Math.max(0, statement.limit - remaining - ownLeast);
      return true;
    }
    if (span.earliest > began.latest) {
      if (span.latest < began.earliest + windowMs - CLOCK_SLIP_MS) return false;
      endWindow(span, windowMs);
      before = 0;
      return true;
    }
    if (span.latest < began.earliest) return false;
    began = { earliest: Math.max(began.earliest, span.earliest), latest: Math.min(began.latest, span.latest) };
    const ownSince = own.endedBefore(sentAt) - own.sentBy(last.answeredAt) - own.inDoubtAfter(last.sentAt);
    return remaining <= last.remaining - Math.max(0, ownSince) - 1 + MISMATCHES_MAX;
  }

  function observe(at: MonotonicMs, calls: number, windowMs: DurationMs): void {
    proved += calls - seen();
    observations.push({ at, calls });
    observations = observations.slice(
      Math.max(
        0,
        observations.findLastIndex((observation) => observation.at <= at - windowMs / OBSERVATIONS_PER_WINDOW),
      ),
    );
  }

  return {
    isTokenBucket: false,
    provenCalls: () => proved,
    hiddenCalls: () => hidden,
    callsInWindow: (now) => (began === null || last === null || now >= began.latest + last.windowMs ? 0 : seen()),
    lastWindowCalls: () => lastWindow,
    update(statement, own) {
      const { answeredAt, limit, remaining, windowMs } = statement;
      if (remaining >= limit || statement.resetAt === null) return false;
      if (statement.resetAt > answeredAt + windowMs + RESET_SLIP_MS) return false;
      if (!recordStart(statement, own)) return false;
      last = statement;
      const ownMost = own.sentBy(answeredAt) - own.endedBefore(began!.earliest);
      observe(answeredAt, Math.max(seen(), limit - remaining - ownMost - before), windowMs);
      return true;
    },
  };
}

function startRangeOf({ sentAt, answeredAt, resetAt, windowMs }: LimitStatement): StartRange {
  const latest = resetAt! - windowMs;
  return { earliest: latest - (answeredAt - sentAt) - 2 * ROUNDING_MS, latest };
}

const middle = ({ earliest, latest }: StartRange): MonotonicMs => (earliest + latest) / 2;
