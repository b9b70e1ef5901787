import { ACTION_KINDS } from "../model/policy/policy.ts";
import { HOLD_REASONS } from "../model/remediation/decision.ts";
import { OPEN_STATES } from "../model/remediation/episode.ts";
import { LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import { PLAN_BOUNDS } from "../scheduling/polling-capacity.ts";

/** Values of the label `endpoint`: the spec's endpoints (section 4) that this daemon calls. */
export const ENDPOINT_LABELS = [
  "nodes_list",
  "node",
  "node_quarantine",
  "node_reboot",
  "node_disconnect",
  "sessions_list",
  "stats",
  "hourly",
] as const;
export type EndpointLabel = (typeof ENDPOINT_LABELS)[number];

/** Values of the label `category`: the service's rate limit categories, and the plan's cap over all of them. */
export const CATEGORY_LABELS = LIMIT_SCOPES;
export type CategoryLabel = LimitScope;

/** Values of the label `limit` of `proxywarden_plan_bound`: the categories, the plan's minute and its month. */
export const PLAN_LIMITS = PLAN_BOUNDS;

/**
 * Values of the label `reason` of `proxywarden_collect_failures_total`: why a collection brought nothing, or not all.
 */
export const FAILURE_REASONS = [
  "unreachable",
  "reset",
  "timeout",
  "unauthorized",
  "forbidden",
  "not_found",
  "rate_limited",
  "client_error",
  "server_error",
  "redirected",
  "not_json",
  "wrong_shape",
  "too_large",
  "incomplete",
  "budget",
  "internal",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/**
 * Values of the label `reason` of `proxywarden_records_rejected_total`: why a record is skipped, or taken with a
 * remark.
 */
export const REJECT_REASONS = [
  "not_an_object",
  "missing_id",
  "wrong_type",
  "unknown_status",
  "unknown_type",
  "usage_out_of_scale",
  "bad_time",
] as const;
export type RejectReason = (typeof REJECT_REASONS)[number];

/** What each failure reason means, for people. */
export const FAILURE_MEANINGS: Readonly<Record<FailureReason, string>> = {
  unreachable: "no connection could be established: DNS name, route, port or TLS",
  reset: "the connection broke before the answer was whole",
  timeout: "no whole answer within service.timeout",
  unauthorized: "401: the API key is not accepted",
  forbidden: "403: the API key lacks the scope, or a cap of the plan is reached",
  not_found: "404: the base URL is wrong, or the node is gone",
  rate_limited: "429: a defect if it ever grows, or another user of the key",
  client_error: "another 4xx",
  server_error: "5xx",
  redirected: "3xx: redirects are never followed",
  not_json: "the body is no JSON",
  wrong_shape: "the JSON has not the shape of the spec",
  too_large: "the body passed the cap and was dropped",
  incomplete: "the walk ended without accounting for every record",
  budget: "the limits left no room for the call before it was due again",
  internal: "a defect of this daemon; the log says more",
};

/** What each reject reason means, for people. */
export const REJECT_MEANINGS: Readonly<Record<RejectReason, string>> = {
  not_an_object: "the record is not a JSON object; it is skipped",
  missing_id: "the record has no id, or one that is not valid Unicode; it is skipped",
  wrong_type: "a field is not of the spec's type or range; that field is unknown",
  unknown_status: "the status is none of the spec's; it counts as unknown",
  unknown_type: "the session type is none of the spec's; it counts as unknown",
  usage_out_of_scale: "a usage contradicts service.usage_scale; all usage is unknown from then on",
  bad_time: "a timestamp is not ISO 8601; that field is unknown",
};

/** Values of the label `reason` of `proxywarden_decisions_total`: every reason to hold, and `all_clear` of an act. */
export const DECISION_REASONS = [...HOLD_REASONS, "all_clear"] as const;

/** Values of the label `state` of `proxywarden_inventory_nodes`: shown by the last walk, or only by an earlier one. */
export const INVENTORY_STATES = ["listed", "unlisted"] as const;
/** Values of the label `state` of `proxywarden_episodes`: timers that run, open episodes, and those given up that still fire. */
export const EPISODE_STATES = ["pending", ...OPEN_STATES, "given_up"] as const;

/** Values of the label `action` of `proxywarden_node_episode`: the action sent last, or that none was. */
export const EPISODE_ACTIONS = [...ACTION_KINDS, "none"] as const;

/** Values of the label `reason` of `proxywarden_web_refusals_total`. */
export const WEB_REFUSALS = [
  "connections",
  "handshake",
  "client_certificate",
  "malformed",
  "rate",
  "credentials",
  "origin",
  "attempts",
  "busy",
] as const;
export type WebRefusal = (typeof WEB_REFUSALS)[number];

/** What each reason of a refusal of the web server means, for people. */
export const WEB_REFUSAL_MEANINGS: Readonly<Record<WebRefusal, string>> = {
  connections: "as many connections as allowed are open, of all clients or of this one",
  handshake: "the TLS handshake failed or took too long; the log says why at level debug",
  client_certificate: "the client showed no certificate, or one that is not let in",
  malformed: "no HTTP or no address (400), a head that is too large (431), or one that takes too long to arrive (408)",
  rate: "more requests than the client, or all together, may send (429)",
  credentials: "no password or operator's token where one is needed, or a wrong one (401)",
  origin: "an order or a reload sent by a web page of another origin, or by any page where there is no token (403)",
  attempts: "too many wrong passwords or tokens (429)",
  busy: "too many requests wait for an answer of the API, or for a password to be checked (503)",
};

/** Values of the label `outcome` of `proxywarden_notifications_total`. */
export const NOTIFICATION_OUTCOMES = ["sent", "failed", "dropped"] as const;
export type NotificationOutcome = (typeof NOTIFICATION_OUTCOMES)[number];
