import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import { type Blocker, HOLD_REASONS, type HoldReason } from "../../model/remediation/decision.ts";
import { type Candidate, type GuardFacts, nextStep } from "../guard-facts.ts";
import { correlatedGuard } from "./correlated-failure.ts";
import { DAEMON_GUARDS } from "./daemon-guards.ts";
import { LIMIT_GUARDS } from "./limit-guards.ts";
import { NODE_GUARDS } from "./node-guards.ts";
import { POLICY_GUARDS } from "./policy-guards.ts";
import { RETRY_GUARDS } from "./retry-guards.ts";
import { breakerGuard, stormGuard } from "./storm-and-breaker.ts";

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

/** Every guard. All of them are checked, and every blocker is reported. */
export const GUARDS: readonly GuardRow[] = [
  ...[...DAEMON_GUARDS, ...POLICY_GUARDS, ...NODE_GUARDS, ...RETRY_GUARDS],
  ...[stormGuard, correlatedGuard, breakerGuard],
  ...LIMIT_GUARDS,
];

const rows: Partial<Record<HoldReason, HoldReasonRow>> = Object.assign({}, ...GUARDS.map(({ reasons }) => reasons));

/** The row of every hold reason, with its alert. `explain`, the status page and the documentation read it. */
export const HOLD_REASON_ROWS = Object.fromEntries(
  HOLD_REASONS.map((reason) => [reason, { alert: HELD_TOO_LONG, ...rows[reason] }]),
) as Readonly<Record<HoldReason, HoldReasonRow>>;

/** Returns every blocker of the candidate's next step. */
export function findBlockers(candidate: Candidate, facts: GuardFacts): readonly Blocker[] {
  const isNotice = nextStep(candidate)?.action === "notify";
  return GUARDS.filter(({ appliesToNotify }) => appliesToNotify || !isNotice).flatMap((guard) =>
    guard.check(candidate, facts),
  );
}
