import type { MonotonicMs } from "../../model/time.ts";

/**
 * Our own calls, as the service may have counted them: each at some time between its sending and its end. All counts
 * start with the first call, so they can be subtracted from one another. Old calls are forgotten.
 */
export class OwnCalls {
  readonly #sent = new TimeList();
  readonly #ended = new TimeList();
  readonly #inDoubt = new TimeList();

  recordSent(at: MonotonicMs): void {
    this.#sent.add(at);
  }

  /** Removes a call recorded as sent at `at`: it was not sent. */
  recordUnsent(at: MonotonicMs): void {
    this.#sent.remove(at);
  }

  /** Records that a call was answered, and so counted by `at`. */
  recordEnd(at: MonotonicMs): void {
    this.#ended.add(at);
  }

  /** Records that a call ended at `at` in doubt: the service counts it by `countedBy`, or never. */
  recordInDoubt(at: MonotonicMs, countedBy: MonotonicMs): void {
    this.#ended.add(countedBy);
    this.#inDoubt.add(at);
  }

  /** Number of calls sent at or before `at`. */
  sentBy(at: MonotonicMs): number {
    return this.#sent.countUpTo(at);
  }

  /** When the last call was sent; -Infinity: none recently. */
  lastSentAt(): MonotonicMs {
    return this.#sent.last();
  }

  /** Number of calls that ended before `at`. */
  endedBefore(at: MonotonicMs): number {
    return this.#ended.countBefore(at);
  }

  /** Number of calls that ended in doubt after `at`. */
  inDoubtAfter(at: MonotonicMs): number {
    return this.#inDoubt.countUpTo(Number.POSITIVE_INFINITY) - this.#inDoubt.countUpTo(at);
  }

  /** When the n-th call ended, counted from 1; Infinity: not yet; -Infinity: it is forgotten. */
  endOf(n: number): MonotonicMs {
    return this.#ended.nth(n);
  }

  /** Allows calls before `at` to be forgotten. */
  forget(at: MonotonicMs): void {
    for (const times of [this.#sent, this.#ended, this.#inDoubt]) times.forget(at);
  }
}

/** Number of entries from which forgetting is worth the copying. */
const ENTRIES_MAX = 512;

/** Times in ascending order. Counts include forgotten ones. */
class TimeList {
  readonly #times: MonotonicMs[] = [];
  #forgotten = 0;

  add(at: MonotonicMs): void {
    if (this.#times.length === 0 || this.last() <= at) this.#times.push(at);
    else this.#times.splice(this.#indexAfter(at), 0, at);
  }

  remove(at: MonotonicMs): void {
    const index = this.#indexFrom(at);
    if (this.#times[index] === at) this.#times.splice(index, 1);
    else this.#forgotten--;
  }

  last(): MonotonicMs {
    return this.#times.at(-1) ?? Number.NEGATIVE_INFINITY;
  }

  countUpTo(at: MonotonicMs): number {
    return this.#forgotten + this.#indexAfter(at);
  }

  countBefore(at: MonotonicMs): number {
    return this.#forgotten + this.#indexFrom(at);
  }

  nth(n: number): MonotonicMs {
    if (n <= this.#forgotten) return Number.NEGATIVE_INFINITY;
    return this.#times[n - this.#forgotten - 1] ?? Number.POSITIVE_INFINITY;
  }

  forget(at: MonotonicMs): void {
    if (this.#times.length < ENTRIES_MAX || this.#times[this.#times.length >> 1]! >= at) return;
    this.#forgotten += this.#times.splice(0, this.#indexFrom(at)).length;
  }

  /** Index of the first time after `at`. */
  #indexAfter(at: MonotonicMs): number {
    return this.#firstIndex((time) => time > at);
  }

  /** Index of the first time not before `at`. */
  #indexFrom(at: MonotonicMs): number {
    return this.#firstIndex((time) => time >= at);
  }

  /** Index of the first time that matches. If a time matches, all later ones must. */
  #firstIndex(matches: (time: MonotonicMs) => boolean): number {
    let [low, high] = [0, this.#times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (matches(this.#times[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
