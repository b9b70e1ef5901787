import { HOLD_REASONS } from "../model/decision.ts";
import { OPEN_STATES, OUTCOMES } from "../model/episode.ts";
import { ACTION_KINDS, MODES } from "../model/policy.ts";
import { COLLECTORS } from "../model/snapshot.ts";
import { CAPPED_FAMILIES } from "./label-caps.ts";
import type { FamilyType } from "./text.ts";
import {
  CATEGORY_LABELS,
  DECISION_REASONS,
  ENDPOINT_LABELS,
  EPISODE_ACTIONS,
  EPISODE_STATES,
  FAILURE_REASONS,
  INVENTORY_STATES,
  NOTIFICATION_OUTCOMES,
  PLAN_LIMITS,
  REJECT_REASONS,
  WEB_REFUSALS,
} from "./vocabulary.ts";

/** One family of the daemon's own. */
export interface WardenFamily {
  readonly type: FamilyType;
  readonly help: string;
  /** By label the closed list of its values, or null where the values are not known beforehand. */
  readonly labels: Readonly<Record<string, readonly string[] | null>>;
  /** Upper bounds of a histogram, without +Inf. */
  readonly buckets?: readonly number[];
}

/** From a loopback answer to the longest time-out one would configure, seconds. */
const requestBucketsSeconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** From a disconnect that helps at once to a ladder's longest usual step, seconds. */
const actionBucketsSeconds = [15, 30, 60, 120, 300, 600, 900, 1_800, 3_600] as const;

const collector = { collector: COLLECTORS } as const;
const category = { category: CATEGORY_LABELS } as const;

/**
 * Every `proxywarden_*` family: what this daemon does. A counter or histogram whose labels are all closed starts at zero in
 * every combination, so that its first increase is an increase; a gauge is absent until it is first set.
 */
export const WARDEN_FAMILIES = {
  proxywarden_collect_last_success_timestamp_seconds: {
    type: "gauge",
    help: "When the collector last succeeded.",
    labels: collector,
  },
  proxywarden_collect_duration_seconds: {
    type: "gauge",
    help: "How long the last collection took, successful or not.",
    labels: collector,
  },
  proxywarden_collect_complete: {
    type: "gauge",
    help: "Whether the last collection accounted for every record.",
    labels: collector,
  },
  proxywarden_collect_completeness_ratio: {
    type: "gauge",
    help: "Share of the records of the list that the last collection has seen, 0 to 1.",
    labels: collector,
  },
  proxywarden_collect_last_complete_timestamp_seconds: {
    type: "gauge",
    help: "When the last complete collection ended.",
    labels: collector,
  },
  proxywarden_inventory_nodes: {
    type: "gauge",
    help: "Nodes remembered: listed by the last walk, or unlisted and not yet known to be gone.",
    labels: { state: INVENTORY_STATES },
  },
  proxywarden_session_table_sessions: {
    type: "gauge",
    help: "Sessions remembered between walks of the session list.",
    labels: {},
  },
  proxywarden_collect_failures_total: {
    type: "counter",
    help: "Collections that brought nothing or not everything.",
    labels: { collector: COLLECTORS, reason: FAILURE_REASONS },
  },
  proxywarden_details_failing_nodes: {
    type: "gauge",
    help: "Nodes whose last detail reads failed, twice or more in a row, while those of others succeeded.",
    labels: {},
  },
  proxywarden_records_rejected_total: {
    type: "counter",
    help: "Records that were skipped, or taken in spite of an odd value.",
    labels: { collector: COLLECTORS, reason: REJECT_REASONS },
  },
  proxywarden_api_requests_total: {
    type: "counter",
    help: "Requests to the management service, by status code or kind of failure.",
    labels: { endpoint: ENDPOINT_LABELS, code: null },
  },
  proxywarden_api_request_duration_seconds: {
    type: "histogram",
    help: "How long requests to the management service took, the whole body included.",
    labels: { endpoint: ENDPOINT_LABELS },
    buckets: requestBucketsSeconds,
  },
  proxywarden_ratelimit_limit: {
    type: "gauge",
    help: "Requests allowed per window, as the service last stated; of `plan`, as configured.",
    labels: category,
  },
  proxywarden_ratelimit_learned_limit: {
    type: "gauge",
    help: "Requests allowed per window, as learned from refusals that no header explains; absent where there were none.",
    labels: category,
  },
  proxywarden_ratelimit_remaining: {
    type: "gauge",
    help: "Requests left in the window, as the service last stated.",
    labels: category,
  },
  proxywarden_ratelimit_reset_timestamp_seconds: {
    type: "gauge",
    help: "When the window resets, on the clock of the service.",
    labels: category,
  },
  proxywarden_ratelimit_wait_seconds_total: {
    type: "counter",
    help: "Time that calls waited for their turn within the limits.",
    labels: category,
  },
  proxywarden_ratelimit_exceeded_total: {
    type: "counter",
    help: "Answers with status 429. More than a few a day come from another user of the key, or from a limit in front of the service.",
    labels: category,
  },
  proxywarden_foreign_calls_total: {
    type: "counter",
    help: "Calls of other users of the key that X-RateLimit-Remaining proves; of `plan`, where the headers speak of the plan.",
    labels: category,
  },
  proxywarden_month_calls: { type: "gauge", help: "Calls made in the month of the plan.", labels: {} },
  proxywarden_month_calls_limit: {
    type: "gauge",
    help: "Calls that the plan allows in a month; absent where it sets no limit.",
    labels: {},
  },
  proxywarden_month_reset_timestamp_seconds: {
    type: "gauge",
    help: "When the month of the plan ends, and its calls are counted from zero.",
    labels: {},
  },
  proxywarden_plan_interval_seconds: {
    type: "gauge",
    help: "Planned interval of the collector; while the month has no calls left for it, the last one there was.",
    labels: collector,
  },
  proxywarden_plan_fresh_seconds: {
    type: "gauge",
    help: "Age up to which data of the collector count as fresh: three planned intervals, or three times as long as a run takes, but no more than a fixed limit. Older samples leave the page.",
    labels: collector,
  },
  proxywarden_plan_stretch_ratio: {
    type: "gauge",
    help: "Planned interval over the one wished for: 1 where the limits carry the wish.",
    labels: collector,
  },
  proxywarden_plan_calls_per_minute: {
    type: "gauge",
    help: "Planned calls a minute of the collector.",
    labels: collector,
  },
  proxywarden_plan_age_seconds: {
    type: "gauge",
    help: "Age to be expected of what the collector brings: of half of it at most, and of all of it at most.",
    labels: { ...collector, age: ["median", "worst"] },
  },
  proxywarden_plan_bound: {
    type: "gauge",
    help: "1 for the limit that keeps the collector from what it is wished to do; 0 for the others.",
    labels: { ...collector, limit: PLAN_LIMITS },
  },
  proxywarden_decisions_total: {
    type: "counter",
    help: "Changes of what is decided on a node: its verdict, or the reasons that hold it.",
    labels: { policy: null, verdict: ["act", "hold"], reason: DECISION_REASONS },
  },
  proxywarden_actions_total: {
    type: "counter",
    help: "Actions by how they ended; one in doubt counts as that too, until what is seen settles it.",
    labels: { policy: null, action: ACTION_KINDS, outcome: OUTCOMES },
  },
  proxywarden_action_duration_seconds: {
    type: "histogram",
    help: "From sending an action until it was verified.",
    labels: { action: ACTION_KINDS },
    buckets: actionBucketsSeconds,
  },
  proxywarden_episodes: {
    type: "gauge",
    help: "Nodes by where they stand under a policy; given_up: still unhealthy, and not tried again for now.",
    labels: { policy: null, state: EPISODE_STATES },
  },
  proxywarden_node_episode: {
    type: "gauge",
    help: "1 for each open episode: the node that has it, where it stands, and the last action sent in it (none: none yet); of the first thousand, those beyond firing before the others.",
    labels: { node_id: null, policy: null, state: OPEN_STATES, action: EPISODE_ACTIONS },
  },
  proxywarden_held_nodes: {
    type: "gauge",
    help: "Nodes that policies would act on and that are held, by reason; a node with several reasons counts for each. Without dry runs.",
    labels: { reason: HOLD_REASONS },
  },
  proxywarden_longest_hold_seconds: {
    type: "gauge",
    help: "Longest time for which the policy has held a node that it would act on; 0: it holds none. Without nodes given up, and without dry runs.",
    labels: { policy: null },
  },
  proxywarden_policy_mode: {
    type: "gauge",
    help: "1 for the mode in force: the least of the policy's own, safety.mode, and what its efficacy leaves it.",
    labels: { policy: null, mode: MODES },
  },
  proxywarden_limit_nodes: {
    type: "gauge",
    help: "What each safety limit comes to for the fleet as it is, in nodes.",
    labels: { limit: null },
  },
  proxywarden_trusted: {
    type: "gauge",
    help: "Whether what is seen is trusted; while it is not, no node is touched.",
    labels: {},
  },
  proxywarden_paused: { type: "gauge", help: "Whether a person paused all actions.", labels: {} },
  proxywarden_breaker_open: {
    type: "gauge",
    help: "Whether the breaker is open; a person resets it.",
    labels: {},
  },
  proxywarden_journal_writable: {
    type: "gauge",
    help: "Whether the journal takes writes; while it does not, no node is touched.",
    labels: {},
  },
  proxywarden_notifications_total: {
    type: "counter",
    help: "Notices by what became of them: taken by the receiver, given up, or dropped from a full queue.",
    labels: { receiver: null, outcome: NOTIFICATION_OUTCOMES },
  },
  proxywarden_service_clock_skew_seconds: {
    type: "gauge",
    help: "How far the clock of the service is ahead of ours.",
    labels: {},
  },
  proxywarden_config_last_reload_successful: {
    type: "gauge",
    help: "Whether the last reload of the configuration succeeded.",
    labels: {},
  },
  proxywarden_web_config_last_reload_successful: {
    type: "gauge",
    help: "Whether web.web_config_file and the certificates it names were fine when they were last read.",
    labels: {},
  },
  proxywarden_web_certificate_expiration_timestamp_seconds: {
    type: "gauge",
    help: "When the certificate that the web server shows ends.",
    labels: {},
  },
  proxywarden_web_refusals_total: {
    type: "counter",
    help: "Connections and requests that the web server turned away.",
    labels: { reason: WEB_REFUSALS },
  },
  proxywarden_build_info: { type: "gauge", help: "The version that runs.", labels: { version: null } },
  proxywarden_export_series: { type: "gauge", help: "Series of the proxynet families on this page.", labels: {} },
  proxywarden_export_families_dropped: {
    type: "gauge",
    help: "Families left out because all together passed export.series_max.",
    labels: {},
  },
  proxywarden_labels_folded_total: {
    type: "counter",
    help: "Records counted under the label value `other`, because the family has as many label values as it may.",
    labels: { family: CAPPED_FAMILIES },
  },
  proxywarden_export_refresh_duration_seconds: {
    type: "gauge",
    help: "How long the last rendering of a snapshot took, other work in between included.",
    labels: {},
  },
} as const satisfies Readonly<Record<string, WardenFamily>>;
