import type { Blocker } from "../../model/remediation/decision.ts";
import type { Candidate, GuardFacts } from "../guard-facts.ts";

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
