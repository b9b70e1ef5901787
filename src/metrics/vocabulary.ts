import { CATEGORIES } from "../budget/limits.ts";

/** Values of the label `endpoint`: the spec's endpoints (section 4) that this daemon calls. */
export const ENDPOINT_LABELS = ["nodes_list", "node", "sessions_list", "stats", "hourly"] as const;
export type EndpointLabel = (typeof ENDPOINT_LABELS)[number];

/** Values of the label `category`: the service's rate limit categories, and the plan's cap over all of them. */
export const CATEGORY_LABELS = [...CATEGORIES, "plan"] as const;
export type CategoryLabel = (typeof CATEGORY_LABELS)[number];

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
  unreachable: "no connection came about: name, route, port or TLS",
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
  not_an_object: "the record is no JSON object; it is skipped",
  missing_id: "the record has no id; it is skipped",
  wrong_type: "a field is not of the spec's type; the record is skipped",
  unknown_status: "the status is none of the spec's; it counts as unknown",
  unknown_type: "the session type is none of the spec's; it counts as unknown",
  usage_out_of_scale: "a usage contradicts service.usage_scale; all usage is unknown from then on",
  bad_time: "a timestamp is not ISO 8601; the record is skipped",
};
