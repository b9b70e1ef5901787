/**
 * The number of bytes that a set of sessions has transferred at constant rates, computed without iterating over the
 * sessions.
 */
export interface ByteCounter {
  /** Number of active sessions. */
  active: number;
  /** Bytes of completed transfers. */
  finishedBytes: number;
  /** Sum of the rates of current transfers, in bytes per millisecond. */
  rate: number;
  /** Sum of rate × start time over current transfers. */
  rateTime: number;
}

/** Creates a counter of no sessions. */
export const createByteCounter = (): ByteCounter => ({ active: 0, finishedBytes: 0, rate: 0, rateTime: 0 });

/** Starts a transfer. Times are in milliseconds since the start of the simulation. */
export function startTransfer(counter: ByteCounter, rate: number, at: number): void {
  counter.rate += rate;
  counter.rateTime += rate * at;
}

/** Ends a transfer that started at `since`. */
export function stopTransfer(counter: ByteCounter, rate: number, since: number, at: number): void {
  counter.rate -= rate;
  counter.rateTime -= rate * since;
  counter.finishedBytes += rate * (at - since);
}

/** Returns the bytes transferred by `at`. */
export const countedBytes = (counter: ByteCounter, at: number): number =>
  counter.finishedBytes + counter.rate * at - counter.rateTime;

/** Converts bytes to GB (1e9 bytes), rounded to three decimals. */
export const gigabytes = (bytes: number): number => Math.round(bytes / 1e6) / 1e3;
