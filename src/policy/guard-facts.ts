import type { Safety } from "../config/schema/safety.ts";
import type { TrustBlocker } from "../inventory/trust.ts";
import type { NodeId, NodeStatus } from "../model/node.ts";
import type { Step } from "../model/policy/policy.ts";
import type { Blocker } from "../model/remediation/decision.ts";
import type { Action, Episode } from "../model/remediation/episode.ts";
import type { Location } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import type { PolicyEvaluation, Verdict } from "./evaluation.ts";
import type { FleetCounts } from "./fleet-counts.ts";
import type { Incident } from "./guards/correlated-failure.ts";
import type { EffectiveLimits } from "./guards/safety-limits.ts";
import type { Breaker, Storm } from "./guards/storm-and-breaker.ts";
import type { ActivePolicy, Policy } from "./policy.ts";
import type { RemediationRecords } from "./remediation-records.ts";
import type { Timer } from "./timer.ts";

/** The last observation of a node, as guards read it. */
export interface NodeObservation extends Location {
  readonly id: NodeId;
  readonly status: NodeStatus;
  /** The verdict of `safety.protected`. */
  readonly protected: Verdict;
}

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
  active.policy.spec.steps[episode?.step ?? 0] ?? null;

/** What guards read besides the candidate, either for real actions or for dry runs. */
export interface GuardFacts {
  readonly now: EpochMs;
  readonly safety: Safety;
  readonly limits: EffectiveLimits;
  readonly fleetCounts: FleetCounts;
  readonly records: RemediationRecords;
  /** Returns the name of a node; its id if it has none or is not listed. */
  nameOf(node: NodeId): string;
  readonly pauseDetail: string | null;
  /** Why actions can't be recorded, or null if they can. */
  readonly journalError: string | null;
  /** Why the service rejects our actions, or null if it has not rejected one recently. */
  readonly credentialsError: string | null;
  readonly trustBlockers: readonly TrustBlocker[];
  readonly storm: Storm | null;
  readonly breaker: Breaker;
  readonly incidents: readonly Incident[];
  /** Actions that are sent and not yet verified. */
  readonly inFlight: readonly Action[];
  /** When actions were sent, within the period of max_actions. */
  readonly sentAtTimes: readonly EpochMs[];
  /** How many of them are assumed because the journal is new. */
  readonly assumedActionCount: number;
  /** Returns the blockers from the windows and external blockers of a policy. */
  policyBlockers(policy: Policy): readonly Blocker<"window" | "blocked_by">[];
  /** Returns the canary episode of an unproven policy. If it is null, the next episode to act becomes the canary. */
  canaryEpisode(policy: Policy): Episode | null;
}
