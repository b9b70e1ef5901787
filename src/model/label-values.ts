import { ACTION_KINDS } from "./policy/policy.ts";
import { OPEN_STATES } from "./remediation/episode.ts";

/** Values of the label `endpoint`: the endpoints of the spec (section 4) that the daemon calls. */
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

/** Values of the label `reason` of `proxywarden_collect_failures_total`, and what each means. */
export const FAILURE_MEANINGS = {
  unreachable: "no connection: check the DNS name, route, port and TLS",
  reset: "the connection broke before the response was complete",
  timeout: "no complete response within service.timeout",
  unauthorized: "401: the API key is not accepted",
  forbidden: "403: the API key lacks a required scope, or a limit of the plan is reached",
  not_found: "404 or 410: the base URL is wrong, or the node is gone",
  rate_limited:
    "429, or no call could be sent because of an earlier 429 or a 5xx with Retry-After; causes of a 429: another user of the key uses up the limit, a gateway has a lower one, or a bug",
  client_error: "another 4xx",
  server_error: "5xx",
  redirected: "3xx: redirects are not followed",
  not_json: "the body is not JSON",
  wrong_shape: "the JSON does not match the API documentation",
  too_large: "the body exceeded the size limit and was discarded",
  incomplete: "the walk ended with records missing, or a detail contradicts an earlier response with a later last_seen",
  budget:
    "the limits left no room for the call within 5 minutes, or the run has used up its share of the calls left in the month",
  internal: "a bug in proxywarden; the log has the stack trace",
} as const;
export type FailureReason = keyof typeof FAILURE_MEANINGS;
/** The reasons, in the order of the table. */
export const FAILURE_REASONS = Object.keys(FAILURE_MEANINGS) as readonly FailureReason[];

/** Values of the label `reason` of `proxywarden_records_rejected_total`, and what each means. */
export const REJECT_MEANINGS = {
  not_an_object: "the record is not a JSON object; it is skipped",
  missing_id: "the record has no id, or one that is not a string of valid Unicode or is too long; it is skipped",
  wrong_type: "a field has the wrong type or is out of range; the field is unknown",
  unknown_status: "the API documentation does not list the status; it is counted as unknown",
  unknown_type: "the API documentation does not list the session type; it is counted as unknown",
  usage_out_of_scale:
    "usage contradicts service.usage_scale; all usage is unknown until the scale is corrected or, if values were too low for percent, until a higher value is read",
  bad_time: "a timestamp is not ISO 8601; the field is unknown",
  older_record:
    "the status differs from that in an earlier response with a later last_seen, so the record may be from a cache or an outdated replica; it is ignored for 2 minutes, and a pending timer starts over",
  contradicting_status:
    "the node is offline again after another record stated that it is online, and its last_seen has stayed the same: the list and the details, or two records of the list, contradict each other; a pending timer starts over each time",
  changing_created_at:
    "created_at changed more than twice, each time within a day of the previous change, without the node leaving the list; the node counts as replaced, or, if more than 10% of the nodes change so often, created_at is not used to recognize replaced nodes",
} as const;
export type RejectReason = keyof typeof REJECT_MEANINGS;
/** The reasons, in the order of the table. */
export const REJECT_REASONS = Object.keys(REJECT_MEANINGS) as readonly RejectReason[];

/** Values of the label `reason` of `proxywarden_web_refusals_total`, and what each means. */
export const WEB_REFUSAL_MEANINGS = {
  connections: "too many connections are open, in total or from this client, or the client opens new ones too fast",
  handshake: "the TLS handshake failed or took too long; the log has the cause at level debug",
  client_certificate: "the client sent no certificate, or one that is not accepted",
  malformed:
    "not HTTP, an invalid URL or Host header (400), a request that arrives too slowly (408), a path that is too long (414), an unsupported Expect header (417), or headers that are too large (431)",
  rate: "the client, or all clients together, sent too many requests (429)",
  credentials: "the password or the operator's token is missing or wrong (401)",
  origin:
    "an operator command or reload from a web page on another origin, or from any page if no operators are configured (403)",
  attempts: "too many wrong passwords or tokens (429)",
  busy: "too many requests are waiting for a response or for a password check, too many event streams are open, or a password check failed (503)",
} as const;
export type WebRefusal = keyof typeof WEB_REFUSAL_MEANINGS;
/** The reasons, in the order of the table. */
export const WEB_REFUSALS = Object.keys(WEB_REFUSAL_MEANINGS) as readonly WebRefusal[];

/** Values of the label `state` of `proxywarden_inventory_nodes`: listed by the last walk, or only by an earlier one. */
export const INVENTORY_STATES = ["listed", "unlisted"] as const;

/**
 * Values of the label `state` of `proxywarden_episodes`: pending timers, open episodes, and nodes given up that still
 * fire.
 */
export const EPISODE_STATES = ["pending", ...OPEN_STATES, "given_up"] as const;

/** Values of the label `action` of `proxywarden_node_episode`: the last action of the episode, or `none`. */
export const EPISODE_ACTIONS = [...ACTION_KINDS, "none"] as const;

/** Values of the label `outcome` of `proxywarden_notifications_total`. */
export const NOTIFICATION_OUTCOMES = ["sent", "failed", "dropped"] as const;
export type NotificationOutcome = (typeof NOTIFICATION_OUTCOMES)[number];

/** The label value for everything that has no series of its own. */
export const OTHER_LABEL = "other";

/**
 * Maximum number of label values per family, for labels whose values come from the service. Further values are counted
 * under {@link OTHER_LABEL}, which bounds memory and the size of a scrape. A value that has a series keeps it while it
 * is listed. Families with one series per node are bounded by the size of the fleet.
 */
export const LABEL_CAPS = {
  proxynet_nodes: { values: 2_000, of: "pairs of country and region, each with one series per status" },
  proxynet_country_sessions: { values: 1_000, of: "countries; there are 676 possible two-letter codes" },
  proxynet_customer_sessions: { values: 100_000, of: "customers counted; `export.top_customers` of them are exported" },
  proxynet_node_sessions: {
    values: 5_000,
    of: "nodes that are in sessions but not in the node list; 200,000 until that list has been complete once; applies to the byte counters too",
  },
  proxynet_stats_country_sessions: { values: 300, of: "countries; ISO 3166-1 defines 249" },
  proxynet_stats_protocol_sessions: { values: 300, of: "protocols" },
} as const;
export type CappedFamily = keyof typeof LABEL_CAPS;
/** Values of the label `family` of `proxywarden_labels_folded_total`. */
export const CAPPED_FAMILIES = Object.keys(LABEL_CAPS) as readonly CappedFamily[];

/** Called with the number of records that one read counted under {@link OTHER_LABEL}. */
export type OnLabelsFolded = (family: CappedFamily, records: number) => void;
