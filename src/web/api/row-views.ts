import type { Decision, Evidence } from "../../model/remediation/decision.ts";
import type { Action, ActionRequest, Episode, NodeHold } from "../../model/remediation/episode.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import { type EpochMs, isoAt } from "../../model/time.ts";
import { iso } from "./notation.ts";

/** Formats an operator command as JSON. */
export const operatorCommandView = (row: OperatorCommandRow) => ({ ...row, at: isoAt(row.at) });
export type OperatorCommandView = ReturnType<typeof operatorCommandView>;

const evidenceView = ({ observedAt, fields }: Evidence) => ({ observed_at: isoAt(observedAt), fields });

/** Formats a decision as JSON. */
export const decisionView = (decision: Decision) => ({
  ...decision,
  at: isoAt(decision.at),
  evidence: evidenceView(decision.evidence),
});
export type DecisionView = ReturnType<typeof decisionView>;

/** Formats what an action requests of the service as JSON. */
const requestView = (request: ActionRequest) =>
  request.kind === "quarantine"
    ? { kind: request.kind, reason: request.reason, duration_minutes: request.durationMinutes }
    : request;

/** Formats an action as JSON. `expiresAt` is when a request for its approval expires. */
export const actionView = (action: Action & { readonly expiresAt?: EpochMs }) => ({
  id: action.id,
  episode: action.episode,
  policy: action.policy,
  node: action.node,
  country: action.country,
  region: action.region,
  step: action.step,
  shadow: action.shadow,
  request: requestView(action.request),
  state: action.state as string,
  outcome: action.outcome,
  proof: action.proof,
  in_doubt: action.inDoubt,
  detail: action.detail,
  created_at: isoAt(action.createdAt),
  sent_at: iso(action.sentAt),
  ended_at: iso(action.endedAt),
  uptime_hours_before: action.uptimeHoursBefore,
  rebooting_seen: action.rebootingSeen,
  operator: action.answered?.operator ?? null,
  answered_at: iso(action.answered?.at),
  expires_at: iso(action.expiresAt),
  evidence: evidenceView(action.evidence),
});
export type RequestView = ReturnType<typeof requestView>;
export type ActionView = ReturnType<typeof actionView>;

/** Formats an episode as JSON. */
export const episodeView = ({ quarantine, ...episode }: Episode) => ({
  id: episode.id,
  policy: episode.policy,
  node: episode.node,
  country: episode.country,
  region: episode.region,
  shadow: episode.shadow,
  state: episode.state as string,
  state_at: isoAt(episode.stateAt),
  opened_at: isoAt(episode.openedAt),
  closed_at: iso(episode.closedAt),
  step: episode.step,
  acted: episode.acted,
  failures: episode.failures,
  retry_at: iso(episode.retryAt),
  healed: episode.healed,
  quarantine: quarantine && {
    action: quarantine.action,
    ends_at: isoAt(quarantine.endsAt),
    seen: quarantine.seen,
    overdue: quarantine.overdue,
  },
});
export type EpisodeView = ReturnType<typeof episodeView>;

/** Formats, as JSON, why no action may be taken on a node. */
export const holdView = ({ kind, policy, at, until, reason, operator }: NodeHold) => ({
  ...{ kind, policy, reason },
  at: isoAt(at),
  until: iso(until),
  operator: operator ?? null,
});
export type HoldView = ReturnType<typeof holdView>;
