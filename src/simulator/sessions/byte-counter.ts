/**
 * Sums over sessions that move bytes at steady rates, kept without visiting them: the bytes moved by a set of sessions
 * at any instant, exact to the byte.
 */
export interface Tally {
  /** Sessions whose status is active. */
  active: number;
  /** Bytes of sessions, or stretches of them, that are over. */
  settledBytes: number;
  /** Sum of the rates of those that move, bytes a millisecond. */
  rate: number;
  /** Sum of rate times the instant at which each began to move. */
  rateTime: number;
}

/** An account of no session. */
export const createTally = (): Tally => ({ active: 0, settledBytes: 0, rate: 0, rateTime: 0 });

/** A session begins to move bytes. Times in milliseconds since the start of the simulation. */
export function beginMoving(tally: Tally, rate: number, at: number): void {
  tally.rate += rate;
  tally.rateTime += rate * at;
}

/** A session that moved bytes since `since` ceases to. */
export function endMoving(tally: Tally, rate: number, since: number, at: number): void {
  tally.rate -= rate;
  tally.rateTime -= rate * since;
  tally.settledBytes += rate * (at - since);
}

/** Bytes that the sessions of the tally have moved by `at`. */
export const tallyBytes = (tally: Tally, at: number): number => tally.settledBytes + tally.rate * at - tally.rateTime;

/** Bytes as the service states them: in gigabytes of 1e9, to the thousandth. */
export const gigabytes = (bytes: number): number => Number((bytes / 1e9).toFixed(3));
