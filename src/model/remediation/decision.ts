import type { NodeId } from "../node.ts";
import type { Mode } from "../policy/policy.ts";
import type { EpochMs } from "../time.ts";

/** The reasons for which a node is held. The row of each is in `src/policy/guards`. All that apply are reported, not the first one. */
export const HOLD_REASONS = [
  ...([
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
  ] as const),
  ...(["verdict_unknown", "window", "blocked_by", "approval", "rejected", "canary"] as const),
  ...([
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
  ] as const),
  ...([
    "storm",
    "storm_cooldown",
    "correlated",
    "breaker",
    "in_flight",
    "disrupted",
    "disrupted_domain",
    "min_online",
    "max_actions",
  ] as const),
] as const;
export type HoldReason = (typeof HOLD_REASONS)[number];

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

/** Whether a node is acted on or held, and why. */
export interface Decision {
  readonly at: EpochMs;
  readonly policy: string;
  readonly node: NodeId;
  /** Null: none has begun, because of a blocker. */
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
