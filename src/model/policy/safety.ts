import type { DurationMs } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { Mode } from "./policy.ts";

/** What nodes are counted by, besides the whole fleet. */
export const FAILURE_DOMAINS = ["region", "country"] as const;
export type FailureDomain = (typeof FAILURE_DOMAINS)[number];

/** A number of nodes for each failure domain; null: no such limit. */
export type PerFailureDomain = Readonly<Record<FailureDomain, number | null>>;

/** The limits over all policies: the section `safety` of the configuration. */
export interface Safety {
  /** The highest mode of any policy. */
  readonly mode: Mode;
  readonly trust: {
    /** Of the largest complete walk in 7 days. */
    readonly minInventory: Share;
    /** Share of the list's total that a walk may fail to show after nodes were looked up by id. */
    readonly maxMissing: Share;
    /** Of list records rejected or of an unknown status. */
    readonly maxUnknown: Share;
    readonly maxFreshestLastSeenMs: DurationMs;
    readonly warmupWalks: number;
  };
  /** Share of the fleet offline, unknown or firing at once; over it: a storm. */
  readonly maxUnhealthy: { readonly share: Share };
  /** Nodes that our actions make unavailable at once; the smaller holds. */
  readonly maxDisrupted: { readonly share: Share; readonly amount: number };
  readonly maxDisruptedPer: PerFailureDomain;
  /** An online node is not acted on if fewer than this would stay online. */
  readonly minOnlinePer: PerFailureDomain;
  /** Actions sent and not yet verified. */
  readonly maxInFlight: number;
  /** Actions sent, of any kind; every attempt counts. */
  readonly maxActions: { readonly amount: number; readonly perMs: DurationMs };
  /** More nodes firing than the larger of both within the time: opens, and stays open until a person resets it. */
  readonly breaker: { readonly share: Share; readonly amount: number; readonly withinMs: DurationMs };
  /** An approval, and a request for one, expires after this. */
  readonly approvalTtlMs: DurationMs;
  /** Between two episodes of one node. */
  readonly cooldownMs: DurationMs;
  readonly stormCooldownMs: DurationMs;
  /** The smaller of both, at least 2, failing together in one region or country: one incident, not acted on. */
  readonly correlated: {
    readonly by: FailureDomain;
    readonly nodes: number;
    readonly share: Share;
    readonly withinMs: DurationMs;
  };
  /** Under a changed policy the first action is verified before a second is sent. */
  readonly canary: boolean;
  /** CEL: nodes that are never acted on; null: none. */
  readonly protected: string | null;
  /** Share of the last episodes that must have healed; below it the policy falls back to dry_run. */
  readonly efficacy: { readonly window: number; readonly minSuccess: Share };
}
