/**
 * Sums over sessions that move bytes at steady rates, kept without visiting them: the bytes moved by a set of sessions
 * at any instant, exact to the byte.
 */
export interface ByteCounter {
  /** Sessions whose status is active. */
  active: number;
  /** Bytes of sessions, or stretches of them, that are over. */
  finishedBytes: number;
  /** Sum of the rates of those that move, bytes a millisecond. */
  rate: number;
  /** Sum of rate times the instant at which each began to move. */
  rateTime: number;
}

/** An account of no session. */
export const createByteCounter = (): ByteCounter => ({ active: 0, finishedBytes: 0, rate: 0, rateTime: 0 });

/** A session begins to move bytes. Times in milliseconds since the start of the simulation. */
export function startTransfer(byteCounter: ByteCounter, rate: number, at: number): void {
  byteCounter.rate += rate;
  byteCounter.rateTime += rate * at;
}

/** A session that moved bytes since `since` ceases to. */
export function stopTransfer(byteCounter: ByteCounter, rate: number, since: number, at: number): void {
  byteCounter.rate -= rate;
  byteCounter.rateTime -= rate * since;
  byteCounter.finishedBytes += rate * (at - since);
}

/** Bytes that the sessions of the tally have moved by `at`. */
export const countedBytes = (byteCounter: ByteCounter, at: number): number =>
  byteCounter.finishedBytes + byteCounter.rate * at - byteCounter.rateTime;

/** Bytes as the service states them: in gigabytes of 1e9, to the thousandth. */
export const gigabytes = (bytes: number): number => Number((bytes / 1e9).toFixed(3));
