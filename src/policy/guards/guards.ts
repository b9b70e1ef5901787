import { type Blocker, HOLD_REASONS, type HoldReason } from "../../model/remediation/decision.ts";
import type { GuardFacts } from "../facts.ts";
import { DAEMON_GUARDS } from "./daemon-guards.ts";
import { FLEET_GUARDS } from "./fleet-guards.ts";
import { type Candidate, type GuardRow, HELD_TOO_LONG, type HoldReasonRow, nextStep } from "./guard-row.ts";
import { LIMIT_GUARDS } from "./limit-guards.ts";
import { NODE_GUARDS } from "./node-guards.ts";
import { POLICY_GUARDS } from "./policy-guards.ts";
import { RETRY_GUARDS } from "./retry-guards.ts";

/** Every guard. All of them are checked, and every blocker is reported. */
export const GUARDS: readonly GuardRow[] = [
  ...[...DAEMON_GUARDS, ...POLICY_GUARDS, ...NODE_GUARDS],
  ...[...RETRY_GUARDS, ...FLEET_GUARDS, ...LIMIT_GUARDS],
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
