import type { NodeId } from "../node.ts";
import type { Mode } from "../policy/policy.ts";
import type { EpochMs } from "../time.ts";

/** One reason to hold a node, with a text that contains the numbers. `src/policy/guards` has a row for each reason. */
export interface Blocker<Reason extends string = string> {
  readonly reason: Reason;
  readonly detail: string;
}

/** The basis of a decision: the values of the node that the policy's expressions read. */
export interface Evidence {
  /** Values by field, such as `node.status`; timestamps in ISO 8601. */
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  /** When the oldest value was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
}

/** Whether an action is taken on a node or the node is held, and why. */
export interface Decision<Reason extends string = string> {
  readonly at: EpochMs;
  readonly policy: string;
  readonly node: NodeId;
  /** Id of the episode, or null if none has begun because of a blocker. */
  readonly episode: string | null;
  /** Index of the policy's step. */
  readonly step: number;
  /** Effective mode: the lowest of the policy's mode, safety.mode and the mode allowed by its efficacy. */
  readonly mode: Mode;
  readonly verdict: "act" | "hold";
  /** Empty if the verdict is `act`. */
  readonly blockers: readonly Blocker<Reason>[];
  readonly evidence: Evidence;
}
