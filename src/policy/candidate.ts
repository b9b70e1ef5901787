import type { Step } from "../model/policy/policy.ts";
import type { Blocker, HoldReason } from "../model/remediation/decision.ts";
import type { Episode } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";
import type { ActivePolicy, GuardFacts, NodeObservation } from "./facts.ts";
import type { Timer } from "./timers/timer.ts";
import type { PolicyEvaluation } from "./timers/verdict.ts";

/** A node on which the next step of a policy would be taken. */
export interface Candidate {
  readonly active: ActivePolicy;
  readonly node: NodeObservation;
  readonly timer: Timer;
  /** Null: none has begun. */
  readonly episode: Episode | null;
  readonly evaluation: PolicyEvaluation;
  /** When the oldest datum of it was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
  /** Whether a person has approved this very step. */
  readonly approved: boolean;
}

/** Returns the blockers of one kind that prevent acting on a candidate. */
export type Guard = (candidate: Candidate, facts: GuardFacts) => readonly Blocker[];

/** A guard, and the reasons for which it may hold a node: {@link HOLD_REASON_ROWS} says what each counts and how it ends. */
export interface GuardRow {
  readonly reasons: readonly HoldReason[];
  readonly check: Guard;
  /** Whether it also holds a step that only notifies. */
  readonly appliesToNotify: boolean;
}

/** The step that would be taken; null: the ladder has none left. */
export const nextStep = ({ active, episode }: Candidate): Step | null =>
  active.policy.rule.steps[episode?.step ?? 0] ?? null;
