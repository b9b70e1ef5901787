import { HOLD_REASONS, type HoldReason } from "../../model/remediation/decision.ts";
import { credentialsGuard, journalGuard, pauseGuard, trustGuard } from "./daemon-guards.ts";
import { breakerGuard, correlatedGuard, stormGuard } from "./fleet-guards.ts";
import { type GuardRow, HELD_TOO_LONG, type HoldReasonRow } from "./guard.ts";
import {
  disruptedDomainGuard,
  disruptedGuard,
  inFlightGuard,
  maxActionsGuard,
  minOnlineGuard,
} from "./limit-guards.ts";
import { holdGuard, otherEpisodeGuard, protectedGuard, statusGuard } from "./node-guards.ts";
import { approvalGuard, canaryGuard, policyBlockersGuard, verdictGuard } from "./policy-guards.ts";
import { backoffGuard, cooldownGuard, retryGuard } from "./retry-guards.ts";

/** Every guard. All of them are checked, and every blocker is reported. */
export const GUARDS: readonly GuardRow[] = [
  pauseGuard,
  journalGuard,
  credentialsGuard,
  trustGuard,
  verdictGuard,
  policyBlockersGuard,
  approvalGuard,
  canaryGuard,
  protectedGuard,
  holdGuard,
  statusGuard,
  otherEpisodeGuard,
  cooldownGuard,
  retryGuard,
  backoffGuard,
  stormGuard,
  correlatedGuard,
  breakerGuard,
  inFlightGuard,
  disruptedGuard,
  disruptedDomainGuard,
  minOnlineGuard,
  maxActionsGuard,
];

const rows: Partial<Record<HoldReason, HoldReasonRow>> = Object.assign({}, ...GUARDS.map(({ reasons }) => reasons));

/** The row of every hold reason, with its alert. `explain`, the status page and the documentation read it. */
export const HOLD_REASON_ROWS = Object.fromEntries(
  HOLD_REASONS.map((reason) => [reason, { alert: HELD_TOO_LONG, ...rows[reason] }]),
) as Readonly<Record<HoldReason, HoldReasonRow>>;
