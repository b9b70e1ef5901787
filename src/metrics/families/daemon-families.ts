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
import { counter, type DaemonFamily, gauge, histogram } from "./family.ts";
import { REMEDIATION_FAMILIES } from "./remediation-families.ts";

/** Buckets from a response over loopback to the longest sensible timeout, in seconds. */
const REQUEST_BUCKETS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

const COLLECTOR_LABEL = { collector: COLLECTORS } as const;
const CATEGORY_LABEL = { category: LIMIT_SCOPES } as const;
const collectorGauge = (help: string) => gauge(help, COLLECTOR_LABEL);
const categoryGauge = (help: string) => gauge(help, CATEGORY_LABEL);
const categoryCounter = (help: string) => counter(help, CATEGORY_LABEL);

/**
 * Every `proxywarden_*` family, in the order of the page. A counter or histogram whose labels all have a closed list of
 * values starts at zero in every combination, so that `increase()` sees the first increase. A gauge is absent until it
 * is first set.
 */
export const DAEMON_FAMILIES = {
  proxywarden_collect_last_success_timestamp_seconds: collectorGauge(
    "Time of the last successful collection; a complete walk is successful even if a page could not be read.",
  ),
  proxywarden_collect_duration_seconds: collectorGauge("Duration of the last collection, whether or not it succeeded."),
  proxywarden_collect_complete: collectorGauge(
    "Whether the last collection was complete (1) or not (0); a complete walk may miss a small share of the records (nodes: safety.trust.max_missing).",
  ),
  proxywarden_collect_completeness_ratio: collectorGauge(
    "Share of the list's records that the last collection returned, 0 to 1.",
  ),
  proxywarden_collect_last_complete_timestamp_seconds: collectorGauge("Time of the last complete collection."),
  proxywarden_inventory_nodes: gauge(
    "Nodes in the inventory: listed by the last walk, or unlisted and not yet confirmed gone.",
    { state: INVENTORY_STATES },
  ),
  proxywarden_session_table_sessions: gauge("Sessions kept in memory between walks of the session list."),
  proxywarden_collect_failures_total: counter("Collections that failed in whole or in part, or were incomplete.", {
    collector: COLLECTORS,
    reason: FAILURE_REASONS,
  }),
  proxywarden_details_failing_nodes: gauge(
    "Nodes whose detail reads failed at least twice in a row because of the node: it was not found, or reads of other nodes succeeded.",
  ),
  proxywarden_records_rejected_total: counter("Records that were skipped, or accepted with an unexpected value.", {
    collector: COLLECTORS,
    reason: REJECT_REASONS,
  }),
  proxywarden_api_requests_total: counter("Requests to the management service, by status code or kind of failure.", {
    endpoint: ENDPOINT_LABELS,
    code: null,
  }),
  proxywarden_api_request_duration_seconds: histogram(
    "Duration of requests to the management service, including the response body.",
    { endpoint: ENDPOINT_LABELS },
    REQUEST_BUCKETS_SECONDS,
  ),
  proxywarden_ratelimit_limit: categoryGauge(
    "Requests allowed per window, as last reported by the service; for `plan`, as configured.",
  ),
  proxywarden_ratelimit_learned_limit: categoryGauge(
    "Requests allowed per window, learned from 429 responses that no header explains; absent if there were none recently.",
  ),
  proxywarden_ratelimit_remaining: categoryGauge("Requests remaining in the window, as last reported by the service."),
  proxywarden_ratelimit_reset_timestamp_seconds: categoryGauge(
    "Time at which the window resets, on the service's clock.",
  ),
  proxywarden_ratelimit_wait_seconds_total: categoryCounter("Time that calls waited for the rate limiter."),
  proxywarden_ratelimit_exceeded_total: categoryCounter(
    "Responses with status 429. More than a few a day indicate another user of the key, or a rate limit in front of the service.",
  ),
  proxywarden_foreign_calls_total: categoryCounter(
    "Calls by other users of the key, derived from X-RateLimit-Remaining; for `plan`, only if the headers describe the plan.",
  ),
  proxywarden_month_calls: gauge(
    "Calls counted in the plan's current month, including detected calls by other users of the key.",
  ),
  proxywarden_month_calls_limit: gauge("Calls that the plan allows per month; absent if the plan sets no limit."),
  proxywarden_month_reset_timestamp_seconds: gauge("Time at which the plan's month ends and its call count resets."),
  proxywarden_plan_interval_seconds: collectorGauge(
    "Planned interval of the collector; while the month has no calls left for it, the last planned interval.",
  ),
  proxywarden_plan_fresh_seconds: collectorGauge(
    "Age up to which the collector's data counts as fresh: three times the planned interval or three times the duration of a run, whichever is longer, up to a maximum that depends on the collector. Except for details, the interval of an earlier, slower plan still applies for three intervals of the current plan. Older samples are not exported.",
  ),
  proxywarden_plan_stretch_ratio: collectorGauge(
    "Ratio of the planned interval to the requested interval; 1 if the limits allow the requested interval.",
  ),
  proxywarden_plan_calls_per_minute: collectorGauge("Planned calls per minute of the collector."),
  proxywarden_plan_age_seconds: gauge("Expected age of the collector's data: median and worst case.", {
    ...COLLECTOR_LABEL,
    age: ["median", "worst"],
  }),
  proxywarden_plan_bound: gauge("1 for the limit that slows the collector down, 0 for the others.", {
    ...COLLECTOR_LABEL,
    limit: PLAN_BOUNDS,
  }),
  ...REMEDIATION_FAMILIES,
  proxywarden_leader: gauge(
    "Whether this daemon leads (1) or stands by (0); always 1 unless several daemons share a PostgreSQL journal.",
  ),
  proxywarden_notifications_total: counter(
    "Notifications by outcome: sent; failed, after all retries or because the receiver rejected them; or dropped, because the queue was full or the receiver was removed.",
    { receiver: null, outcome: NOTIFICATION_OUTCOMES },
  ),
  proxywarden_notifications_queued: gauge("Notifications that are not delivered yet, including those being retried.", {
    receiver: null,
  }),
  proxywarden_service_clock_skew_seconds: gauge(
    "Offset of the service's clock from the local clock; positive if the service is ahead.",
  ),
  proxywarden_config_last_reload_successful: gauge("Whether the last reload of the configuration succeeded."),
  proxywarden_web_config_last_reload_successful: gauge(
    "Whether the last load of web.web_config_file and its certificates succeeded.",
  ),
  proxywarden_web_certificate_expiration_timestamp_seconds: gauge("Expiry time of the web server's certificate."),
  proxywarden_web_refusals_total: counter("Connections and requests rejected by the web server.", {
    reason: WEB_REFUSALS,
  }),
  proxywarden_build_info: gauge("Build information; always 1.", { version: null }),
  proxywarden_export_series: gauge("Exported series of the proxynet_* families."),
  proxywarden_export_families_dropped: gauge("Families dropped to stay within export.series_max."),
  proxywarden_labels_folded_total: counter(
    "Records counted under the label value `other` because the family reached its limit of label values.",
    { family: CAPPED_FAMILIES },
  ),
  proxywarden_export_refresh_duration_seconds: gauge(
    "Time it took to publish the last snapshot on /metrics, including other work done in the meantime.",
  ),
} satisfies Readonly<Record<string, DaemonFamily>>;
