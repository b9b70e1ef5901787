import type { DurationMs } from "../../base/duration.ts";

/** What a policy may do, ascending: record what it would do; act after an approval of each action; act. */
export const MODES = ["dry_run", "approve", "enforce"] as const;
export type Mode = (typeof MODES)[number];

/** What may be done to a node (spec, sections 4.3 to 4.5). */
export const ACTION_KINDS = ["disconnect", "reboot", "quarantine"] as const;

/** How a step is verified: it ends after `withinMs`, or as soon as `expect` holds. */
export interface StepVerification {
  readonly withinMs: DurationMs;
  /** A CEL expression; null: the default of the action. */
  readonly expect: string | null;
}

/** What a quarantine's reason may name, as in `{{policy}}`. */
export const REASON_PLACEHOLDERS = ["policy", "when", "episode", "node"] as const;

/** One step of a policy. */
export type Step =
  | { readonly action: "disconnect"; readonly verify: StepVerification }
  | { readonly action: "reboot"; readonly force: boolean; readonly verify: StepVerification }
  | {
      readonly action: "quarantine";
      /** Whole minutes (spec, section 4.3). */
      readonly durationMs: DurationMs;
      /** A template: see {@link REASON_PLACEHOLDERS}. */
      readonly reason: string;
      readonly verify: StepVerification;
    }
  | { readonly action: "notify"; readonly receiver: string };

/** What blocks a policy: a Prometheus query with a result, or firing alerts with these matchers. */
export type ExternalBlocker =
  | { readonly kind: "query"; readonly query: string }
  | { readonly kind: "alerts"; readonly matchers: readonly string[] };

/** A policy as its file states it. */
export interface PolicyRule {
  readonly name: string;
  readonly mode: Mode;
  /** CEL: which nodes it applies to; null: every node. */
  readonly match: string | null;
  /** CEL: the condition of an unhealthy node. */
  readonly when: string;
  readonly forMs: DurationMs;
  readonly clearForMs: DurationMs;
  /** Oldest datum that an expression may read; null: as long as the plan takes the data of its source for fresh. */
  readonly maxAgeMs: DurationMs | null;
  readonly steps: readonly Step[];
  /** At most `episodes` within `forgetAfterMs`; after one that did not heal, the next begins `everyMs` later. */
  readonly retry: { readonly episodes: number; readonly everyMs: DurationMs; readonly forgetAfterMs: DurationMs };
  /** Names of time intervals; none: always. */
  readonly windows: readonly string[];
  readonly blockedBy: readonly ExternalBlocker[];
}

/** Usages that only a detail shows, as the columns of a fleet name them. */
export const USAGES = ["cpuUsage", "memoryUsage", "diskUsage"] as const;
export type Usage = (typeof USAGES)[number];

/** A line that a policy draws through a usage: where one of its comparisons changes its mind. */
export interface Threshold {
  readonly usage: Usage;
  /** 0 to 1, as usages are. */
  readonly value: number;
  /** The side of the threshold on which the policy matches. */
  readonly side: "above" | "below";
}
