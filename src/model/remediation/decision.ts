import type { NodeId } from "../node.ts";
import type { Mode } from "../policy/policy.ts";
import type { EpochMs } from "../time.ts";

/**
 * The reasons to hold a node. Each is a row in `src/policy/guards`. All that apply are reported, not just the first.
 */
export const HOLD_REASONS = [
  "paused",
  "journal",
  "credentials",
  "warming_up",
  "inventory_incomplete",
  "inventory_shrunk",
  "inventory_unknown",
  "last_seen_stale",
  "service_clock",
  "sight_cooldown",
  "verdict_unknown",
  "window",
  "blocked_by",
  "approval",
  "rejected",
  "canary",
  "protected",
  "held",
  "status",
  "ownership",
  "vetoed",
  "other_episode",
  "cooldown",
  "retry_wait",
  "retry_limit",
  "backoff",
  "storm",
  "storm_cooldown",
  "correlated",
  "breaker",
  "in_flight",
  "disrupted",
  "disrupted_domain",
  "min_online",
  "max_actions",
] as const;
export type HoldReason = (typeof HOLD_REASONS)[number];

/** One reason to hold, with a text that contains the numbers. */
export interface Blocker {
  readonly reason: HoldReason;
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
export interface Decision {
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
  readonly blockers: readonly Blocker[];
  readonly evidence: Evidence;
}
