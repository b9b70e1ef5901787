import { type DurationMs, SECOND_MS } from "../../base/duration.ts";

/** What a policy may do, in ascending order: record what it would do, act after an operator's approval, or act. */
export const MODES = ["dry_run", "approve", "enforce"] as const;
export type Mode = (typeof MODES)[number];

/** The actions on a node (spec, sections 4.3 to 4.5). */
export const ACTION_KINDS = ["disconnect", "reboot", "quarantine"] as const;

/** Minimum time between two reads of a node that verify a step, and between the action and the first of them. */
export const VERIFICATION_READ_MS_MIN: DurationMs = 15 * SECOND_MS;

/** How a step is verified. Verification ends when `expect` is true, or after `withinMs`. */
export interface StepVerification {
  readonly withinMs: DurationMs;
  /** A CEL expression. Null means the default of the action. */
  readonly expect: string | null;
}

/** Placeholders in the reason of a quarantine, such as `{{policy}}`. */
export const REASON_PLACEHOLDERS = ["policy", "when", "episode", "node"] as const;

/** One step of a policy. */
export type Step =
  | { readonly action: "disconnect"; readonly verify: StepVerification }
  | { readonly action: "reboot"; readonly force: boolean; readonly verify: StepVerification }
  | {
      readonly action: "quarantine";
      /** Whole minutes (spec, section 4.3). */
      readonly durationMs: DurationMs;
      /** A template with {@link REASON_PLACEHOLDERS}. */
      readonly reason: string;
      readonly verify: StepVerification;
    }
  | { readonly action: "notify"; readonly receiver: string };

/** What blocks a policy: a Prometheus query with a result, or firing alerts with these matchers. */
export type ExternalBlocker =
  | { readonly kind: "query"; readonly query: string }
  | { readonly kind: "alerts"; readonly matchers: readonly string[] };

/** A policy as declared in its file. */
export interface PolicySpec {
  readonly name: string;
  readonly mode: Mode;
  /** CEL expression that selects the nodes. Null means every node. */
  readonly match: string | null;
  /** CEL expression that is true for an unhealthy node. */
  readonly when: string;
  readonly forMs: DurationMs;
  readonly clearForMs: DurationMs;
  /** Maximum age of the values that expressions read. Null means that the plan decides how long data is fresh. */
  readonly maxAgeMs: DurationMs | null;
  readonly steps: readonly Step[];
  /**
   * At most `episodes` within `forgetAfterMs`. After an episode that did not heal the node, the next one begins at
   * least `everyMs` later.
   */
  readonly retry: { readonly episodes: number; readonly everyMs: DurationMs; readonly forgetAfterMs: DurationMs };
  /** Names of the time intervals in which it may act; if empty, it always may. */
  readonly windows: readonly string[];
  readonly blockedBy: readonly ExternalBlocker[];
}

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
