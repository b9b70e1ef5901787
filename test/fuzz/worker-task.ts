/** What the thread is given: the cases of a seed from one number up to, and not including, another. */
export interface WorkerTask {
  /** URL of the target's module. */
  readonly module: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  /** Of a shared Int32Array: {@link HEARTBEAT}. */
  readonly heartbeat: SharedArrayBuffer;
  readonly slowMs: number;
  readonly heapGrowthBytesMax: number;
}

/** Places in the heartbeat: the number of the case under way, and 1 once the target is ready. */
export const HEARTBEAT = { number: 0, isReady: 1 } as const;

/** Why a case failed. */
export type FailureKind = "exception" | "unhandled" | "slow" | "hang" | "memory";

/** What the thread reports: a failure, or that all cases are over. */
export type WorkerReport =
  | { readonly kind: FailureKind; readonly number: number; readonly detail: string }
  | { readonly kind: "done"; readonly heapGrowthBytes: number };
