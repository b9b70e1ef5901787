import type { NodeId } from "../node.ts";
import type { Mode } from "../policy/policy.ts";
import type { EpochMs } from "../time.ts";
import { HOLD_REASON_ROWS } from "./hold-reasons.ts";

/** A reason for which a node is held: a row of {@link HOLD_REASON_ROWS}. */
export type HoldReason = keyof typeof HOLD_REASON_ROWS;
/** All reasons for which a node is held. All that apply are given, not the first one. */
export const HOLD_REASONS = Object.keys(HOLD_REASON_ROWS) as [HoldReason, ...HoldReason[]];

/** One reason to hold, in words that name the numbers. */
export interface Blocker {
  readonly reason: HoldReason;
  readonly detail: string;
}

/** What a decision was made on: what the policy's expressions read of the node. */
export interface Evidence {
  /** By field, as in `node.status`; timestamps as ISO 8601. */
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  /** When the oldest of them was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
}

/** Whether a node is acted on or held, and why. Whoever executes it has no choice left. */
export interface Decision {
  readonly at: EpochMs;
  readonly policy: string;
  readonly node: NodeId;
  /** Null: none has begun, for what holds the node forbids it. */
  readonly episode: string | null;
  /** Index of the policy's step that it is about. */
  readonly step: number;
  /** In force for the policy: the lesser of its own mode and the ceiling. */
  readonly mode: Mode;
  readonly verdict: "act" | "hold";
  /** None where the verdict is `act`. */
  readonly blockers: readonly Blocker[];
  readonly evidence: Evidence;
}
