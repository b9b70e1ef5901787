import type { Step } from "../../config/schema/policy.ts";
import type { Safety } from "../../config/schema/safety.ts";
import type { TrustBlocker } from "../../inventory/trust.ts";
import type { NodeId, NodeStatus } from "../../model/node.ts";
import type { Action, Blocker, Episode } from "../../model/remediation/episode.ts";
import type { Location } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import type { PolicyEvaluation, Verdict } from "../evaluation.ts";
import type { FleetCounts } from "../fleet-counts.ts";
import type { ActivePolicy, Policy } from "../policy.ts";
import type { RemediationRecords } from "../remediation-records.ts";
import type { Timer } from "../timer.ts";
import type { Incident } from "./correlated-failure.ts";
import type { EffectiveLimits } from "./safety-limits.ts";
import type { Breaker, Storm } from "./storm-and-breaker.ts";

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

/** A check that can hold a node, and the reasons that it returns. */
export interface GuardRow<Reason extends string = string> {
  readonly reasons: Readonly<Record<Reason, HoldReasonRow>>;
  /** Whether it also holds notify steps. Absent if it holds only steps that act on the node. */
  readonly appliesToNotify?: true;
  /** Returns what prevents the candidate's next step. */
  check(candidate: Candidate, facts: GuardFacts): readonly Blocker<NoInfer<Reason>>[];
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
   * The alert in `config/prometheus/rules` that fires before the hold has lasted `HOLD_MS_MAX`. If absent, it is
   * `HELD_TOO_LONG`. Null if none is needed, because the hold ends before that with the default `safety`.
   */
  readonly alert?: string | null;
  /** Whether it holds all nodes of a policy, or ends with an approval. A canary that it holds remains the canary. */
  readonly policyWide?: true;
  /** Whether no episode can begin while it holds the node. */
  readonly preventsEpisode?: true;
}

/** Returns the guard. The compiler infers its reasons from the row, and rejects a check that returns any other. */
export const defineGuard = <Reason extends string>(guard: GuardRow<Reason>): GuardRow<Reason> => guard;

/** A guard with a single reason, and the row of that reason. */
interface SimpleGuard<Reason extends string> extends HoldReasonRow, Pick<GuardRow, "appliesToNotify"> {
  readonly reason: Reason;
  /** Returns what prevents the candidate's next step, each with the numbers. */
  details(candidate: Candidate, facts: GuardFacts): readonly string[];
}

/** Returns a guard with a single reason. */
export const defineSimpleGuard = <Reason extends string>({
  reason,
  appliesToNotify,
  details,
  ...row
}: SimpleGuard<Reason>): GuardRow<Reason> => ({
  reasons: { [reason]: row } as Record<Reason, HoldReasonRow>,
  ...(appliesToNotify && { appliesToNotify }),
  check: (candidate, facts) => details(candidate, facts).map((detail) => ({ reason, detail })),
});
