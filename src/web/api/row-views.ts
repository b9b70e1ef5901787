import type { Blocker, Decision, Evidence } from "../../model/remediation/decision.ts";
import type { Action, ActionRequest, Episode, NodeHold } from "../../model/remediation/episode.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import { iso, isoAt } from "./notation.ts";

/** What something was decided on. */
export interface EvidenceView {
  readonly observed_at: string;
  readonly fields: Evidence["fields"];
}

/** A decision, as JSON shows it. */
export interface DecisionView {
  readonly at: string;
  readonly policy: string;
  readonly node: string;
  readonly episode: string | null;
  /** Index of the policy's step, from 0. */
  readonly step: number;
  readonly mode: string;
  readonly verdict: string;
  readonly blockers: readonly Blocker[];
  readonly evidence: EvidenceView;
}

/** What is posted, as JSON shows it. */
export type RequestView =
  | { readonly kind: "disconnect" }
  | { readonly kind: "reboot"; readonly force: boolean }
  | { readonly kind: "quarantine"; readonly reason: string; readonly duration_minutes: number };

/** An action, as JSON shows it. */
export interface ActionView {
  readonly id: string;
  readonly episode: string;
  readonly policy: string;
  readonly node: string;
  readonly country: string;
  readonly region: string;
  readonly step: number;
  /** Of a policy in dry_run: it was not sent. */
  readonly shadow: boolean;
  readonly request: RequestView;
  readonly state: string;
  readonly outcome: string | null;
  readonly proof: string | null;
  readonly in_doubt: boolean;
  readonly detail: string | null;
  readonly created_at: string;
  readonly sent_at: string | null;
  readonly ended_at: string | null;
  readonly uptime_hours_before: number | null;
  readonly rebooting_seen: boolean;
  /** Who approved or rejected it; null: no named operator did. */
  readonly operator: string | null;
  readonly answered_at: string | null;
  readonly evidence: EvidenceView;
}

/** An episode, as JSON shows it. */
export interface EpisodeView {
  readonly id: string;
  readonly policy: string;
  readonly node: string;
  readonly country: string;
  readonly region: string;
  readonly shadow: boolean;
  readonly state: string;
  readonly state_at: string;
  readonly opened_at: string;
  readonly closed_at: string | null;
  readonly step: number;
  readonly acted: number;
  readonly failures: number;
  readonly retry_at: string | null;
  readonly healed: boolean;
  readonly quarantine: {
    readonly action: string;
    readonly ends_at: string;
    readonly seen: boolean;
    readonly overdue: boolean;
  } | null;
}

/** What keeps a node from being touched, as JSON shows it. */
export interface HoldView {
  readonly kind: string;
  /** Null: every policy. */
  readonly policy: string | null;
  readonly at: string;
  /** Null: until it is released. */
  readonly until: string | null;
  readonly reason: string;
  /** Null: no named operator holds it. */
  readonly operator: string | null;
}

/** An order of an operator, as JSON shows it. */
export interface OrderView {
  readonly at: string;
  readonly order: string;
  readonly operator: string | null;
  readonly node: string | null;
  readonly action: string | null;
  readonly detail: string;
}

/** Shows an order. */
export const orderView = (row: OperatorCommandRow): OrderView => ({ ...row, at: isoAt(row.at) });

/** Shows a decision. */
export const decisionView = (decision: Decision): DecisionView => ({
  at: isoAt(decision.at),
  policy: decision.policy,
  node: decision.node,
  episode: decision.episode,
  step: decision.step,
  mode: decision.mode,
  verdict: decision.verdict,
  blockers: decision.blockers,
  evidence: evidenceView(decision.evidence),
});

/** Shows an action. */
export const actionView = (action: Action): ActionView => ({
  id: action.id,
  episode: action.episode,
  policy: action.policy,
  node: action.node,
  country: action.country,
  region: action.region,
  step: action.step,
  shadow: action.shadow,
  request: requestView(action.request),
  state: action.state,
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
  answered_at: iso(action.answered?.at ?? null),
  evidence: evidenceView(action.evidence),
});

/** Shows an episode. */
export const episodeView = (episode: Episode): EpisodeView => ({
  id: episode.id,
  policy: episode.policy,
  node: episode.node,
  country: episode.country,
  region: episode.region,
  shadow: episode.shadow,
  state: episode.state,
  state_at: isoAt(episode.stateAt),
  opened_at: isoAt(episode.openedAt),
  closed_at: iso(episode.closedAt),
  step: episode.step,
  acted: episode.acted,
  failures: episode.failures,
  retry_at: iso(episode.retryAt),
  healed: episode.healed,
  quarantine:
    episode.quarantine === null
      ? null
      : {
          action: episode.quarantine.action,
          ends_at: isoAt(episode.quarantine.endsAt),
          seen: episode.quarantine.seen,
          overdue: episode.quarantine.overdue,
        },
});

/** Shows a hold. */
export const holdView = (hold: NodeHold): HoldView => ({
  kind: hold.kind,
  policy: hold.policy,
  at: isoAt(hold.at),
  until: iso(hold.until),
  reason: hold.reason,
  operator: hold.operator ?? null,
});

const evidenceView = ({ observedAt, fields }: Evidence): EvidenceView => ({ observed_at: isoAt(observedAt), fields });

function requestView(request: ActionRequest): RequestView {
  if (request.kind !== "quarantine") return request;
  return { kind: request.kind, reason: request.reason, duration_minutes: request.durationMinutes };
}
