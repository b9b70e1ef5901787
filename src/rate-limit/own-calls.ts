import type { MonotonicMs } from "../model/time.ts";

/**
 * Our own calls. The service counted each at some time between its sending and its end. All counts start with the first
 * call, so they can be subtracted from one another. Old calls are forgotten.
 */
export class OwnCalls {
  readonly sent = new TimeList();
  readonly ended = new TimeList();
  readonly #inDoubt = new TimeList();

  /** Records that a call ended in doubt at `at`. The service counts it by `countedBy`, or never. */
  recordInDoubt(at: MonotonicMs, countedBy: MonotonicMs): void {
    this.ended.add(countedBy);
    this.#inDoubt.add(at);
  }

  /** Returns the number of calls that the service has certainly counted by `now`, or never will. */
  settledBy(now: MonotonicMs): number {
    return this.ended.countBy(now);
  }

  /** Returns the number of calls that have not ended. */
  inFlight(): number {
    return this.sent.count() - this.ended.count();
  }

  /** Returns the number of calls that ended in doubt after `at`. */
  inDoubtAfter(at: MonotonicMs): number {
    return this.#inDoubt.count() - this.#inDoubt.countBy(at);
  }

  /** Allows calls before `at` to be forgotten. */
  forget(at: MonotonicMs): void {
    for (const times of [this.sent, this.ended, this.#inDoubt]) times.forget(at);
  }
}

/** Entries are forgotten only if there are at least this many, since removing them copies the others. */
const FORGET_ENTRIES_MIN = 512;

/** Times in ascending order. Counts include forgotten ones. */
class TimeList {
  readonly #times: MonotonicMs[] = [];
  #forgotten = 0;

  add(at: MonotonicMs): void {
    if (this.#times.length === 0 || this.last() <= at) this.#times.push(at);
    else this.#times.splice(this.#indexAfter(at), 0, at);
  }

  /** Removes a time that was added, even if it is forgotten already. */
  remove(at: MonotonicMs): void {
    const index = this.#indexFrom(at);
    if (this.#times[index] === at) this.#times.splice(index, 1);
    else this.#forgotten--;
  }

  /** Returns the last time, or -Infinity if there is none, or it is forgotten. */
  last(): MonotonicMs {
    return this.#times.at(-1) ?? Number.NEGATIVE_INFINITY;
  }

  /** Returns the number of all times. */
  count(): number {
    return this.#forgotten + this.#times.length;
  }

  /** Returns the number of times at or before `at`. */
  countBy(at: MonotonicMs): number {
    return this.#forgotten + this.#indexAfter(at);
  }

  countBefore(at: MonotonicMs): number {
    return this.#forgotten + this.#indexFrom(at);
  }

  /** Returns the n-th time, counted from 1; Infinity if there is none, and -Infinity if it is forgotten. */
  nth(n: number): MonotonicMs {
    if (n <= this.#forgotten) return Number.NEGATIVE_INFINITY;
    return this.#times[n - this.#forgotten - 1] ?? Number.POSITIVE_INFINITY;
  }

  forget(at: MonotonicMs): void {
    if (this.#times.length < FORGET_ENTRIES_MIN || this.#times[this.#times.length >> 1]! >= at) return;
    this.#forgotten += this.#times.splice(0, this.#indexFrom(at)).length;
  }

  /** Returns the index of the first time after `at`. */
  #indexAfter(at: MonotonicMs): number {
    return this.#firstIndex((time) => time > at);
  }

  /** Returns the index of the first time not before `at`. */
  #indexFrom(at: MonotonicMs): number {
    return this.#firstIndex((time) => time >= at);
  }

  /** Returns the index of the first time that matches. If a time matches, all later ones must. */
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
