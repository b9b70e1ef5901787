import type { MonotonicMs } from "../../model/time.ts";

/**
 * Our own calls, as the service may have counted them: each at some moment between its sending and its end. Counts are
 * from the beginning on, so that they can be subtracted from one another; what is long past is forgotten.
 */
export interface OwnCalls {
  recordSent(at: MonotonicMs): void;
  /** Takes back the sending at `at`: nothing went out. */
  recordUnsent(at: MonotonicMs): void;
  /** A call was answered, and so was counted by now. */
  recordEnd(at: MonotonicMs): void;
  /** A call came to an end of which nobody knows whether it was counted; if it is, then by `countedBy`. */
  recordInDoubt(at: MonotonicMs, countedBy: MonotonicMs): void;
  /** Calls sent at `at` or before. */
  sentBy(at: MonotonicMs): number;
  /** When the last call was sent; -Infinity: none was, of late. */
  lastSent(): MonotonicMs;
  /** Calls that had ended before `at`. */
  endedBefore(at: MonotonicMs): number;
  /** Calls that ended in doubt after `at`. */
  inDoubtAfter(at: MonotonicMs): number;
  /** The moment at which the n-th call from the beginning ended; Infinity: it has not. Of one long past, any moment then. */
  endOf(n: number): MonotonicMs;
  /** Forgets what lies before `at`, now and then. */
  forget(at: MonotonicMs): void;
}

/** Entries beyond which forgetting is worth the moving. */
const ENTRIES_MAX = 512;

/** No calls yet. */
export function createOwnCalls(): OwnCalls {
  const sent = createTimeList();
  const ended = createTimeList();
  const inDoubt = createTimeList();
  return {
    recordSent: (at) => sent.add(at),
    recordUnsent: (at) => sent.remove(at),
    recordEnd: (at) => ended.add(at),
    recordInDoubt(at, countedBy) {
      ended.add(countedBy);
      inDoubt.add(at);
    },
    lastSent: () => sent.last(),
    sentBy: (at) => sent.upTo(at),
    endedBefore: (at) => ended.before(at),
    inDoubtAfter: (at) => inDoubt.upTo(Number.POSITIVE_INFINITY) - inDoubt.upTo(at),
    endOf: (n) => ended.nth(n),
    forget(at) {
      for (const times of [sent, ended, inDoubt]) times.forget(at);
    },
  };
}

/** Moments in their order, counted from the first one ever. */
function createTimeList() {
  const times: MonotonicMs[] = [];
  let forgotten = 0;

  /** Index of the first moment after `at`, or, `inclusive`, of the first that is not before it. */
  function find(at: MonotonicMs, inclusive: boolean): number {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle]! > at || (inclusive && times[middle] === at)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  return {
    add(at: MonotonicMs): void {
      if (times.length === 0 || times.at(-1)! <= at) times.push(at);
      else times.splice(find(at, false), 0, at);
    },
    remove(at: MonotonicMs): void {
      const index = find(at, true);
      if (times[index] === at) times.splice(index, 1);
      else forgotten--;
    },
    last: (): MonotonicMs => times.at(-1) ?? Number.NEGATIVE_INFINITY,
    upTo: (at: MonotonicMs): number => forgotten + find(at, false),
    before: (at: MonotonicMs): number => forgotten + find(at, true),
    nth: (n: number): MonotonicMs =>
      n <= forgotten ? Number.NEGATIVE_INFINITY : (times[n - forgotten - 1] ?? Number.POSITIVE_INFINITY),
    forget(at: MonotonicMs): void {
      if (times.length < ENTRIES_MAX || times[times.length >> 1]! >= at) return;
      forgotten += times.splice(0, find(at, true)).length;
    },
  };
}
