import {
  CAPPED_FAMILIES,
  ENDPOINT_LABELS,
  FAILURE_REASONS,
  INVENTORY_STATES,
  NOTIFICATION_OUTCOMES,
  REJECT_REASONS,
  WEB_REFUSALS,
} from "../../model/label-values.ts";
import { COLLECTORS } from "../../model/snapshot.ts";
import { LIMIT_SCOPES } from "../../rate-limit/external-usage/external-usage.ts";
import { PLAN_BOUNDS } from "../../scheduling/polling-capacity.ts";
import type { DaemonFamily } from "./family.ts";
import { REMEDIATION_FAMILIES } from "./remediation-families.ts";

/** Buckets from a response over loopback to the longest sensible timeout, in seconds. */
const REQUEST_BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

const COLLECTOR_LABEL = { collector: COLLECTORS } as const;
const CATEGORY_LABEL = { category: LIMIT_SCOPES } as const;

/**
 * Every `proxywarden_*` family, in the order of the page. A counter or histogram whose labels all have a closed list of
 * values starts at zero in every combination, so that `increase()` sees the first increase. A gauge is absent until it
 * is first set.
 */
export const DAEMON_FAMILIES = {
  proxywarden_collect_last_success_timestamp_seconds: {
    type: "gauge",
    help: "Time of the last successful collection.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_collect_duration_seconds: {
    type: "gauge",
    help: "Duration of the last collection, whether or not it succeeded.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_collect_complete: {
    type: "gauge",
    help: "Whether the last collection was complete (1) or not (0); a complete walk may miss a small share of the records (nodes: safety.trust.max_missing).",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_collect_completeness_ratio: {
    type: "gauge",
    help: "Share of the list's records that the last collection returned, 0 to 1.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_collect_last_complete_timestamp_seconds: {
    type: "gauge",
    help: "Time of the last complete collection.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_inventory_nodes: {
    type: "gauge",
    help: "Nodes in the inventory: listed by the last walk, or unlisted and not yet confirmed gone.",
    labels: { state: INVENTORY_STATES },
  },
  proxywarden_session_table_sessions: {
    type: "gauge",
    help: "Sessions kept in memory between walks of the session list.",
    labels: {},
  },
  proxywarden_collect_failures_total: {
    type: "counter",
    help: "Collections that failed or were incomplete.",
    labels: { collector: COLLECTORS, reason: FAILURE_REASONS },
  },
  proxywarden_details_failing_nodes: {
    type: "gauge",
    help: "Nodes whose detail reads failed at least twice in a row while those of other nodes succeeded.",
    labels: {},
  },
  proxywarden_records_rejected_total: {
    type: "counter",
    help: "Records that were skipped, or accepted with an unexpected value.",
    labels: { collector: COLLECTORS, reason: REJECT_REASONS },
  },
  proxywarden_api_requests_total: {
    type: "counter",
    help: "Requests to the management service, by status code or kind of failure.",
    labels: { endpoint: ENDPOINT_LABELS, code: null },
  },
  proxywarden_api_request_duration_seconds: {
    type: "histogram",
    help: "Duration of requests to the management service, including the response body.",
    labels: { endpoint: ENDPOINT_LABELS },
    buckets: REQUEST_BUCKETS_SECONDS,
  },
  proxywarden_ratelimit_limit: {
    type: "gauge",
    help: "Requests allowed per window, as last reported by the service; for `plan`, as configured.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_ratelimit_learned_limit: {
    type: "gauge",
    help: "Requests allowed per window, learned from 429 responses that no header explains; absent if there were none.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_ratelimit_remaining: {
    type: "gauge",
    help: "Requests remaining in the window, as last reported by the service.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_ratelimit_reset_timestamp_seconds: {
    type: "gauge",
    help: "Time at which the window resets, on the service's clock.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_ratelimit_wait_seconds_total: {
    type: "counter",
    help: "Time that calls waited for the rate limiter.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_ratelimit_exceeded_total: {
    type: "counter",
    help: "Responses with status 429. More than a few a day indicate another user of the key, or a rate limit in front of the service.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_foreign_calls_total: {
    type: "counter",
    help: "Calls by other users of the key, derived from X-RateLimit-Remaining; for `plan`, only if the headers describe the plan.",
    labels: CATEGORY_LABEL,
  },
  proxywarden_month_calls: {
    type: "gauge",
    help: "Calls counted in the current plan month, including detected calls by other users of the key.",
    labels: {},
  },
  proxywarden_month_calls_limit: {
    type: "gauge",
    help: "Calls that the plan allows per month; absent if the plan sets no limit.",
    labels: {},
  },
  proxywarden_month_reset_timestamp_seconds: {
    type: "gauge",
    help: "Time at which the plan month ends and its call count resets.",
    labels: {},
  },
  proxywarden_plan_interval_seconds: {
    type: "gauge",
    help: "Planned interval of the collector; while the month has no calls left for it, the last planned interval.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_plan_fresh_seconds: {
    type: "gauge",
    help: "Age up to which the collector's data counts as fresh: three planned intervals or the duration of three runs, whichever is longer, up to a maximum that depends on the collector. Older samples are not exported.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_plan_stretch_ratio: {
    type: "gauge",
    help: "Ratio of the planned interval to the requested interval; 1 if the limits allow the requested interval.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_plan_calls_per_minute: {
    type: "gauge",
    help: "Planned calls per minute of the collector.",
    labels: COLLECTOR_LABEL,
  },
  proxywarden_plan_age_seconds: {
    type: "gauge",
    help: "Expected age of the collector's data: median and worst case.",
    labels: { ...COLLECTOR_LABEL, age: ["median", "worst"] },
  },
  proxywarden_plan_bound: {
    type: "gauge",
    help: "1 for the limit that slows the collector down, 0 for the others.",
    labels: { ...COLLECTOR_LABEL, limit: PLAN_BOUNDS },
  },
  ...REMEDIATION_FAMILIES,
  proxywarden_leader: {
    type: "gauge",
    help: "Whether this daemon leads (1) or stands by (0); always 1 unless several daemons share a PostgreSQL journal.",
    labels: {},
  },
  proxywarden_notifications_total: {
    type: "counter",
    help: "Notifications by outcome: sent, failed after all retries, or dropped from a full queue.",
    labels: { receiver: null, outcome: NOTIFICATION_OUTCOMES },
  },
  proxywarden_service_clock_skew_seconds: {
    type: "gauge",
    help: "Offset of the service's clock from the local clock; positive if the service is ahead.",
    labels: {},
  },
  proxywarden_config_last_reload_successful: {
    type: "gauge",
    help: "Whether the last reload of the configuration succeeded.",
    labels: {},
  },
  proxywarden_web_config_last_reload_successful: {
    type: "gauge",
    help: "Whether the last load of web.web_config_file and its certificates succeeded.",
    labels: {},
  },
  proxywarden_web_certificate_expiration_timestamp_seconds: {
    type: "gauge",
    help: "Expiry time of the web server's certificate.",
    labels: {},
  },
  proxywarden_web_refusals_total: {
    type: "counter",
    help: "Connections and requests rejected by the web server.",
    labels: { reason: WEB_REFUSALS },
  },
  proxywarden_build_info: { type: "gauge", help: "Build information; always 1.", labels: { version: null } },
  proxywarden_export_series: { type: "gauge", help: "Exported series of the proxynet_* families.", labels: {} },
  proxywarden_export_families_dropped: {
    type: "gauge",
    help: "Families dropped to stay within export.series_max.",
    labels: {},
  },
  proxywarden_labels_folded_total: {
    type: "counter",
    help: "Records counted under the label value `other` because the family reached its limit of label values.",
    labels: { family: CAPPED_FAMILIES },
  },
  proxywarden_export_refresh_duration_seconds: {
    type: "gauge",
    help: "Duration of the last rendering of a snapshot, including other work done while it ran.",
    labels: {},
  },
} as const satisfies Readonly<Record<string, DaemonFamily>>;
