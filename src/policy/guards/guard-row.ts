import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Step } from "../../model/policy/policy.ts";
import type { Blocker, HoldReason } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { ActivePolicy, GuardFacts, NodeObservation } from "../facts.ts";
import type { Timer } from "../timers/timer.ts";
import type { PolicyEvaluation } from "../timers/verdict.ts";

/** A node under a policy whose next step is considered. */
export interface Candidate {
  readonly active: ActivePolicy;
  readonly node: NodeObservation;
  readonly timer: Timer;
  /** The episode, or null if none has begun. */
  readonly episode: Episode | null;
  readonly evaluation: PolicyEvaluation;
  /** When the oldest datum of the evaluation was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
  /** Whether an operator approved this step. */
  readonly approved: boolean;
}

/** Returns the next step, or null if none is left. */
export const nextStep = ({ active, episode }: Candidate): Step | null =>
  active.policy.rule.steps[episode?.step ?? 0] ?? null;

/** A check that can hold a node, and the reasons that it returns. */
export interface GuardRow {
  readonly reasons: Readonly<Partial<Record<HoldReason, HoldReasonRow>>>;
  /** Whether it also holds notify steps. Absent if it holds only steps that act on the node. */
  readonly appliesToNotify?: true;
  /** Returns what prevents the candidate's next step. */
  check(candidate: Candidate, facts: GuardFacts): readonly Blocker[];
}

/** Documentation and properties of a reason to hold a node. */
export interface HoldReasonRow {
  /** What the guard counts or reads. */
  readonly counts: string;
  /** When it holds the node, with the configuration key of the limit. */
  readonly condition: string;
  /** How the hold ends: automatically, or with an operator command. */
  readonly ends: string;
  /** What an operator should do. Absent if nothing needs to be done. */
  readonly operatorAction?: string;
  /**
   * The alert in `config/prometheus/rules` that fires before the hold has lasted {@link HOLD_MS_MAX}. If absent, it is
   * {@link HELD_TOO_LONG}. Null if none is needed, because the hold ends before that with the default `safety`.
   */
  readonly alert?: string | null;
  /** Whether it holds all nodes of a policy, or ends with an approval. A canary that it holds remains the canary. */
  readonly policyWide?: true;
  /** Whether no episode can begin while it holds the node. */
  readonly preventsEpisode?: true;
}

/** An alert fires for every hold that lasts longer than this. */
export const HOLD_MS_MAX: DurationMs = 6 * HOUR_MS;

/** The alert for any node that is held for too long. */
export const HELD_TOO_LONG = "ProxywardenHeldTooLong";
