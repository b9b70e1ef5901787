import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Step } from "../../model/policy/policy.ts";
import type { Blocker, HoldReason } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { ActivePolicy, GuardFacts, NodeObservation } from "../facts.ts";
import type { Timer } from "../timers/timer.ts";
import type { PolicyEvaluation } from "../timers/verdict.ts";

/** A node under a policy, whose next step may be taken. */
export interface Candidate {
  readonly active: ActivePolicy;
  readonly node: NodeObservation;
  readonly timer: Timer;
  /** Null: no episode has begun. */
  readonly episode: Episode | null;
  readonly evaluation: PolicyEvaluation;
  /** When the oldest datum of the evaluation was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
  /** Whether an operator approved this step. */
  readonly approved: boolean;
}

/** Returns the step that would be taken; null: none is left. */
export const nextStep = ({ active, episode }: Candidate): Step | null =>
  active.policy.rule.steps[episode?.step ?? 0] ?? null;

/** One guard: a check that can hold a node, and the reasons that it gives. */
export interface GuardRow {
  readonly reasons: Readonly<Partial<Record<HoldReason, HoldReasonRow>>>;
  /** Whether it also holds a step that only notifies; absent: it holds only steps that act on the node. */
  readonly appliesToNotify?: true;
  /** Returns what prevents the candidate's next step. */
  check(candidate: Candidate, facts: GuardFacts): readonly Blocker[];
}

/** Why a node is held, what is counted or read for it, and how the hold ends. */
export interface HoldReasonRow {
  /** What is counted or read. */
  readonly counts: string;
  /** When it holds: with the key of the configuration that sets the limit. */
  readonly condition: string;
  /** How the hold ends: automatically, or with a command of an operator. */
  readonly ends: string;
  /** What an operator does about it; absent: nothing. */
  readonly operatorAction?: string;
  /**
   * The alert of `config/prometheus/rules` that fires before the hold has lasted {@link HOLD_MS_MAX}; absent:
   * {@link HELD_TOO_LONG}; null: with the default `safety` the hold ends automatically before that.
   */
  readonly alert?: string | null;
  /** Whether it holds every node of a policy alike, or ends with an approval: a canary that it holds stays the canary. */
  readonly policyWide?: true;
  /** Whether no episode begins while it holds; otherwise it holds an episode that has begun. */
  readonly preventsEpisode?: true;
}

/** No hold lasts longer than this without an alert. */
export const HOLD_MS_MAX: DurationMs = 6 * HOUR_MS;

/** The alert on any node that is held for too long. */
export const HELD_TOO_LONG = "ProxywardenHeldTooLong";
