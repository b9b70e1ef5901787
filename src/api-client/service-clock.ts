import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** Bounds of the offset of the service's clock from our monotonic clock. */
interface Bounds {
  readonly low: number;
  readonly high: number;
}

/**
 * The offset of what was observed since `from`, which is later than `after`, the last observation under the offset
 * before. The first response that showed it was received at `shownAt`.
 */
interface Offset extends Bounds {
  readonly after: MonotonicMs;
  readonly from: MonotonicMs;
  readonly shownAt: MonotonicMs;
}

/** An offset that responses have shown, but no two in a row. */
interface UnconfirmedOffset extends Bounds {
  /** When the content of these responses was observed. */
  readonly observedAt: readonly MonotonicMs[];
  /** When the first of them was received. */
  readonly shownAt: MonotonicMs;
  /** Whether no response with the current offset was received after the last of them. */
  readonly isLatest: boolean;
}

/** Maximum number of offsets that are kept. */
const OFFSETS_MAX = 100;
/** Clocks that differ by less are the same clock, which drifts. */
const TOLERANCE_MS: DurationMs = 2 * SECOND_MS;
/** The smallest difference between two observation times. */
const TICK_MS: DurationMs = 0.001;
/** Maximum number of requests that are kept because the clock was set before their response was written. */
const EARLY_REQUESTS_MAX = 10_000;

/**
 * The service's clock, derived from Date headers and our monotonic clock. Our wall clock is not used because it may jump.
 * A Date is truncated to seconds and was written between sending and receiving, so each response gives a lower and an
 * upper bound of the offset from our monotonic clock. Together they leave an uncertainty of a few milliseconds.
 *
 * A Date that contradicts the earlier ones may be wrong, since a gateway or one of several servers may have written it.
 * The service's clock was set if two responses in a row agree on it. The new offset then applies to what was observed
 * since the first response that showed it, and the earlier one to what was observed before.
 */
export class ServiceClock {
  /** Oldest first. */
  readonly #offsets: Offset[] = [];
  /** An offset that contradicts the last of them. */
  #unconfirmed: UnconfirmedOffset | null = null;
  #isAgreed = false;
  /** The latest observation under the last of the offsets. */
  #lastObservedAt = Number.NEGATIVE_INFINITY;
  /**
   * Requests whose response has a Date that matches only the offset of later times, each with such a time, oldest first.
   * The Date may be wrong, so the content still counts as observed when it was requested.
   */
  readonly #timesOfEarlyRequests = new Map<MonotonicMs, MonotonicMs>();

  /**
   * Records the Date header of a response. Responses must be recorded in the order in which they were received. Returns
   * when the content of the response was observed, at the earliest: when it was requested or, if its Date is by the
   * clock as it was before it was last set, a time before that.
   */
  recordDate(date: EpochMs, sentAt: MonotonicMs, receivedAt: MonotonicMs): MonotonicMs {
    const time = this.#observationTime({ low: date - receivedAt, high: date + SECOND_MS - sentAt }, sentAt, receivedAt);
    return time > sentAt ? this.#recordEarlyRequest(sentAt, time) : time;
  }

  /**
   * Returns when the content of the last response that agrees with an earlier one was observed, or null if no two have
   * agreed. Until then the only Date, or the first of those that differ, counts.
   */
  agreedAt(): MonotonicMs | null {
    return this.#isAgreed ? this.#lastObservedAt : null;
  }

  /**
   * Returns the service's clock at `at`, as it was set then. Null before the first Date header, and for the time of a
   * response whose Date contradicts the others and is not confirmed yet.
   */
  timeAt(at: MonotonicMs): EpochMs | null {
    // Called for each node of the fleet.
    const offsets = this.#offsets;
    const time = this.#timesOfEarlyRequests.size === 0 ? at : (this.#timesOfEarlyRequests.get(at) ?? at);
    if (offsets.length === 0 || this.#unconfirmed?.observedAt.includes(time)) return null;
    let index = offsets.length - 1;
    while (index > 0 && time < offsets[index]!.from) index--;
    const { low, high } = offsets[index]!;
    return at + (low + high) / 2;
  }

  /** Returns a time that has the offset of the response: when it was requested, unless that has another one. */
  #observationTime(shown: Bounds, sentAt: MonotonicMs, receivedAt: MonotonicMs): MonotonicMs {
    const last = Math.max(0, this.#offsets.length - 1);
    const [previous, current = firstOffset(shown, receivedAt)] = [this.#offsets[last - 1], this.#offsets[last]];
    if (agree(current, shown)) return this.#recordAgreement(current, shown, sentAt);
    const next = Math.max(sentAt, this.#lastObservedAt + TICK_MS);
    if (this.#unconfirmed !== null && agree(this.#unconfirmed, shown)) {
      this.#confirm(this.#unconfirmed, shown, next);
      return next;
    }
    if (previous !== undefined && sentAt < current.shownAt && agree(previous, shown)) {
      const observedAt = Math.min(sentAt, current.from - TICK_MS);
      this.#offsets[last] = { ...current, after: Math.max(current.after, observedAt) };
      return observedAt;
    }
    this.#unconfirmed = { ...shown, observedAt: [next], shownAt: receivedAt, isLatest: true };
    return next;
  }

  /** Records a response that agrees with the current offset. Returns when its content was observed. */
  #recordAgreement(current: Offset, shown: Bounds, sentAt: MonotonicMs): MonotonicMs {
    this.#isAgreed ||= this.#offsets.length > 0;
    // A request that was sent before the other response was received may have been answered before the clock was set.
    if (this.#unconfirmed !== null)
      this.#unconfirmed = sentAt >= this.#unconfirmed.shownAt ? null : { ...this.#unconfirmed, isLatest: false };
    const from = Math.max(current.after + TICK_MS, Math.min(current.from, sentAt));
    this.#offsets[Math.max(0, this.#offsets.length - 1)] = { ...current, ...combine(current, shown), from };
    const until = Math.min(...(this.#unconfirmed?.observedAt ?? [])) - TICK_MS;
    const observedAt = Math.min(Math.max(sentAt, from), until);
    this.#lastObservedAt = Math.max(this.#lastObservedAt, observedAt);
    return observedAt;
  }

  /**
   * Records another response with the unconfirmed offset, whose content was observed at `at`. The offset becomes the
   * current one if no response with the earlier offset was received in between.
   */
  #confirm(unconfirmed: UnconfirmedOffset, shown: Bounds, at: MonotonicMs): void {
    const { shownAt, isLatest } = unconfirmed;
    const bounds = combine(unconfirmed, shown);
    const observedAt = [...unconfirmed.observedAt, at];
    this.#unconfirmed = isLatest ? null : { ...bounds, observedAt, shownAt, isLatest: true };
    if (!isLatest) return;
    this.#offsets.push({ ...bounds, after: this.#lastObservedAt, from: Math.min(...observedAt), shownAt });
    if (this.#offsets.length > OFFSETS_MAX) this.#offsets.shift();
    this.#isAgreed = true;
    this.#lastObservedAt = Math.max(...observedAt);
  }

  #recordEarlyRequest(sentAt: MonotonicMs, time: MonotonicMs): MonotonicMs {
    // Another response to a request of the same moment may show the other clock.
    const at = sentAt - TICK_MS / 4;
    this.#timesOfEarlyRequests.delete(at);
    this.#timesOfEarlyRequests.set(at, time);
    if (this.#timesOfEarlyRequests.size > EARLY_REQUESTS_MAX) {
      const [oldest] = this.#timesOfEarlyRequests.keys();
      this.#timesOfEarlyRequests.delete(oldest!);
    }
    return at;
  }
}

const firstOffset = (shown: Bounds, receivedAt: MonotonicMs): Offset => {
  const always = Number.NEGATIVE_INFINITY;
  return { ...shown, after: always, from: always, shownAt: receivedAt };
};

/** Returns whether two offsets may be those of the same clock. */
const agree = (one: Bounds, other: Bounds): boolean =>
  Math.max(one.low, other.low) - Math.min(one.high, other.high) <= TOLERANCE_MS;

/**
 * Returns the bounds that satisfy both. If they don't overlap, because the clock has drifted, returns at most a second of
 * the later bounds, on the side of the earlier ones, since the bounds of a slow response are wide.
 */
function combine(earlier: Bounds, later: Bounds): Bounds {
  const [low, high] = [Math.max(earlier.low, later.low), Math.min(earlier.high, later.high)];
  if (low <= high) return { low, high };
  return later.low > earlier.high
    ? { low: later.low, high: Math.min(later.high, later.low + SECOND_MS) }
    : { low: Math.max(later.low, later.high - SECOND_MS), high: later.high };
}
