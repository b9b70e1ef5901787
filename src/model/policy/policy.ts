import { type DurationMs, SECOND_MS } from "../../base/duration.ts";

/** What a policy may do, in ascending order: record what it would do, act after an operator's approval, or act. */
export const MODES = ["dry_run", "approve", "enforce"] as const;
export type Mode = (typeof MODES)[number];

/** The actions on a node (spec, sections 4.3 to 4.5). */
export const ACTION_KINDS = ["disconnect", "reboot", "quarantine"] as const;

/** Minimum time between two reads of a node that verify a step, and between the action and the first of them. */
export const VERIFICATION_READ_MS_MIN: DurationMs = 15 * SECOND_MS;

/** Placeholders in the reason of a quarantine, such as `{{policy}}`. */
export const REASON_PLACEHOLDERS = ["policy", "when", "episode", "node"] as const;

/** What blocks a policy: a Prometheus query with a result, or firing alerts with these matchers. */
export type ExternalBlocker =
  | { readonly kind: "query"; readonly query: string }
  | { readonly kind: "alerts"; readonly matchers: readonly string[] };

/** Usages, by the names of the fleet's columns. Only details contain them. */
export const USAGES = ["cpuUsage", "memoryUsage", "diskUsage"] as const;
export type Usage = (typeof USAGES)[number];

/** A usage at which a comparison of a policy changes its result. */
export interface Threshold {
  readonly usage: Usage;
  /** 0 to 1. */
  readonly value: number;
  /** The side of the threshold on which the policy matches. */
  readonly side: "above" | "below";
}
