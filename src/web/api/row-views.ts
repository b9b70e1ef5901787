import type { NodeId } from "../../model/node.ts";
import type { Action, ActionRequest, Decision, Episode, Evidence, NodeHold } from "../../model/remediation/episode.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { type EpochMs, isoAt } from "../../model/time.ts";
import { slotsById } from "../../policy/cel/field-readers.ts";
import { iso, pick } from "./json-values.ts";

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

/** Formats the request that an action sends to the service as JSON. */
const requestView = (request: ActionRequest) =>
  request.kind === "quarantine"
    ? { ...pick(request, "kind", "reason"), duration_minutes: request.durationMinutes }
    : request;

/** Formats an action as JSON. `expiresAt` is when a request for its approval expires. */
export const actionView = (action: Action & { readonly expiresAt?: EpochMs }) => ({
  ...pick(action, "id", "episode", "policy", "node", "country", "region", "step"),
  ...pick(action, "outcome", "proof", "detail"),
  dry_run: action.dryRun,
  state: action.state as string,
  request: requestView(action.request),
  in_doubt: action.inDoubt,
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
export const episodeView = (episode: Episode) => ({
  ...pick(episode, "id", "policy", "node", "country", "region", "step", "acted", "failures", "healed"),
  dry_run: episode.dryRun,
  state: episode.state as string,
  state_at: isoAt(episode.stateAt),
  opened_at: isoAt(episode.openedAt),
  closed_at: iso(episode.closedAt),
  retry_at: iso(episode.retryAt),
  quarantine: episode.quarantine && {
    ...pick(episode.quarantine, "action", "seen", "overdue"),
    ends_at: isoAt(episode.quarantine.endsAt),
  },
});
export type EpisodeView = ReturnType<typeof episodeView>;

/** Formats, as JSON, why no action may be taken on a node. */
export const holdView = (hold: NodeHold) => ({
  ...pick(hold, "kind", "policy", "reason"),
  at: isoAt(hold.at),
  until: iso(hold.until),
  operator: hold.operator ?? null,
});
export type HoldView = ReturnType<typeof holdView>;

/**
 * Adds the name, country and region of its node to each row, unless the row has its own. They are null if the node
 * is not in the fleet, or the row is about no node.
 */
export const withNodes = <Row extends { readonly node: NodeId | null }>(rows: readonly Row[], fleet: Fleet | null) =>
  rows.map((row) => {
    const slot = fleet === null ? undefined : slotsById(fleet).get(row.node ?? "");
    const location = slot === undefined ? undefined : fleet?.locations[fleet.locationIndex[slot]!];
    const name = slot === undefined ? null : fleet?.name[slot] || null;
    return { name, country: location?.country ?? null, region: location?.region ?? null, ...row };
  });
/** A row with the name and the location of its node. */
export type WithNode<Row extends { readonly node: NodeId | null }> = ReturnType<typeof withNodes<Row>>[number];
