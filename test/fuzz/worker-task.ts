/** The task of a thread: the cases of a seed from `from` to `to` (excluded). */
export interface WorkerTask {
  /** URL of the target's module. */
  readonly module: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  /** A shared Int32Array with the positions of {@link HEARTBEAT}. */
  readonly heartbeat: SharedArrayBuffer;
  readonly slowMs: number;
  readonly heapGrowthBytesMax: number;
}

/** Positions in the heartbeat: the number of the current case, and 1 when the target is ready. */
export const HEARTBEAT = { number: 0, isReady: 1 } as const;

/** Why a case failed. */
export type FailureKind = "exception" | "unhandled" | "slow" | "hang" | "memory";

/** A report of the thread: a failure, or the end of all cases. */
export type WorkerReport =
  | { readonly kind: FailureKind; readonly number: number; readonly detail: string }
  | { readonly kind: "done"; readonly heapGrowthBytes: number };
