import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import { type Candidate, type GuardFacts, nextStep } from "../guard-facts.ts";
import { correlatedGuard } from "./correlated-failure.ts";
import { DAEMON_GUARDS } from "./daemon-guards.ts";
import type { GuardRow, HoldReasonRow } from "./guard-definition.ts";
import { LIMIT_GUARDS } from "./limit-guards.ts";
import { NODE_GUARDS } from "./node-guards.ts";
import { POLICY_GUARDS } from "./policy-guards.ts";
import { RETRY_GUARDS } from "./retry-guards.ts";
import { breakerGuard, stormGuard } from "./storm-and-breaker.ts";

/** An alert fires for every hold that lasts longer than this. */
export const HOLD_MS_MAX: DurationMs = 6 * HOUR_MS;

/** The alert for any node that is held for too long. */
export const HELD_TOO_LONG = "ProxywardenHeldTooLong";

/** Every guard. All of them are checked, and every blocker is reported. */
export const GUARDS = [
  ...[...DAEMON_GUARDS, ...POLICY_GUARDS, ...NODE_GUARDS, ...RETRY_GUARDS],
  ...[stormGuard, correlatedGuard, breakerGuard],
  ...LIMIT_GUARDS,
];

type ReasonOf<Guard> = Guard extends GuardRow<infer Reason> ? Reason : never;
/** The reasons to hold a node. All that apply are reported, not just the first. */
export type HoldReason = ReasonOf<(typeof GUARDS)[number]>;

/** The row of every reason, with its alert. `explain`, the status page and the documentation read it. */
export const HOLD_REASON_ROWS = Object.fromEntries(
  GUARDS.flatMap(({ reasons }) => Object.entries<HoldReasonRow>(reasons)).map(([reason, row]) => [
    reason,
    { alert: HELD_TOO_LONG, ...row },
  ]),
) as Readonly<Record<HoldReason, HoldReasonRow>>;

/** The reasons, in the order of the guards. */
export const HOLD_REASONS = Object.keys(HOLD_REASON_ROWS) as readonly HoldReason[];

/** Returns every blocker of the candidate's next step. */
export function findBlockers(candidate: Candidate, facts: GuardFacts): readonly Blocker<HoldReason>[] {
  const isNotice = nextStep(candidate)?.action === "notify";
  return GUARDS.filter(({ appliesToNotify }) => appliesToNotify || !isNotice).flatMap(
    (guard): readonly Blocker<HoldReason>[] => guard.check(candidate, facts),
  );
}
