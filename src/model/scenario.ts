import type { DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";

/** The ways in which the simulated service can count requests. The spec defines limits, but no algorithm. */
export const LIMITER_KINDS = [
  "token_bucket",
  "fixed_window",
  "first_call_window",
  "sliding_window",
  "sliding_counter",
] as const;
export type LimiterKind = (typeof LIMITER_KINDS)[number];

/** Fields by which the node list can be sorted, other than the order of joining. */
export const NODE_ORDERS = [
  "id",
  "name",
  "status",
  "country",
  "region",
  "ip_address",
  "version",
  "last_seen",
  "uptime_hours",
  "active_sessions",
  "bandwidth_gb",
  "created_at",
  "updated_at",
] as const;

/** Fields by which the session list can be sorted. */
export const SESSION_ORDERS = [
  "id",
  "customer_id",
  "node_id",
  "status",
  "started_at",
  "bytes_sent",
  "bytes_received",
] as const;

/** A field for ascending order, or with a leading `-` for descending order. */
export type Ordering<Field extends string> = Field | `-${Field}`;

/** How one of the lists is served. */
export interface ListOptions<Order extends string> {
  readonly order: Order;
  /** A page that begins after this many records is answered with 400; Infinity if none is. */
  readonly recordsMax: number;
  /** Whether `total` counts the records of the list or those of the page. */
  readonly totalCounts: "list" | "page";
  /** `total` is the count of this long ago, to the second. */
  readonly totalLagMs: DurationMs;
  /** Added to `total`. The result is at least 0. */
  readonly totalOffBy: number;
  /** Fixed `total`, regardless of the list. */
  readonly totalFixed?: number;
}

/** Every choice that the spec leaves open. The client must work with each of them. */
export interface ServiceOptions {
  readonly limiter: LimiterKind;
  /** The limit that X-RateLimit headers describe, or `off` to send them only with a 429. */
  readonly rateLimitHeaders: "category" | "plan" | "off";
  /** Number of the first page. */
  readonly firstPage: 0 | 1;
  readonly pageLimitDefault: number;
  readonly pageLimitMax: number;
  /** Response to a `limit` over `pageLimitMax`: fewer records than requested, or a 4xx. */
  readonly pageLimitOver: "clamp" | "reject";
  /** Whether a clamped page echoes the effective limit or the requested one. */
  readonly pageLimitEcho: "effective" | "requested";
  readonly usageScale: "ratio" | "percent";
  /** How a detail states the uptime, whose hours the list rounds down. */
  readonly detailUptime: "floored" | "rounded" | "exact";
  /** Whether a detail states the country and region as the list does, or in lower and upper case. */
  readonly detailLocation: "same" | "other_case";
  /** What `created_at` states: when the node was created, its last boot (it registers again), or the response's time. */
  readonly createdAt: "creation" | "boot" | "request";
  /** The status of a quarantined node. */
  readonly quarantineStatus: "quarantined" | "maintenance";
  /** `code`: {error, message}; `nested`: {error: {code, message}}; `text`: text/plain; `empty`: no body. */
  readonly errorBody: "code" | "nested" | "text" | "empty";
  /** Response to reboot and disconnect: a body like that of quarantine, an empty JSON object, or 204 without a body. */
  readonly actionReply: "success" | "empty_object" | "no_content";
  /** Whether ended sessions stay in the list for a while. */
  readonly listEndedSessions: boolean;
  readonly plan: "starter" | "business" | "enterprise";
  /** Status of the response for a node that does not exist. */
  readonly unknownNodeStatus: 404 | 410 | 400 | 403;
  /** Whether a call over the concurrent cap or the monthly cap gets 429 or 403. */
  readonly planCapStatus: 429 | 403;
  /**
   * Compression of bodies. `accepted` uses gzip if Accept-Encoding contains it; `gzip` and `br` are always used,
   * regardless of the request.
   */
  readonly compression: "off" | "accepted" | "gzip" | "br";
  /** Whether X-RateLimit-Reset of a token bucket is the time at which it is full or that of the next token. */
  readonly tokenBucketReset: "full" | "next_token";
  /** `joined` is the order in which nodes joined the fleet, oldest first. */
  readonly nodeList: ListOptions<"joined" | Ordering<(typeof NODE_ORDERS)[number]>>;
  readonly sessionList: ListOptions<Ordering<(typeof SESSION_ORDERS)[number]>>;
}

/** Scopes of an API key (spec, section 5). No endpoint of the spec requires `sessions:write`. */
export const SCOPES = ["nodes:read", "nodes:write", "sessions:read", "sessions:write"] as const;
export type Scope = (typeof SCOPES)[number];

/** What a fault does to the requests that it matches, or to the network. */
export type FaultKind =
  | {
      readonly kind: "status";
      readonly status: number;
      /** Value of the Retry-After header. */
      readonly retryAfter?: string;
      /** Replaces `retryAfter` with an HTTP-date that is this much later than the response, by the service's clock. */
      readonly retryAfterDateMs?: DurationMs;
      /**
       * Whether a gateway in front of the service sends it, without X-RateLimit headers and without counting the
       * request.
       */
      readonly bare?: boolean;
    }
  /** Limits requests in a gateway in front of the service, with a token bucket. Its 429 has no X-RateLimit headers. */
  | {
      readonly kind: "gateway_limit";
      readonly requestsPerMinute: number;
      readonly burst: number;
      /** Seconds in the Retry-After header of its 429. Absent means no header. */
      readonly retryAfter?: number;
    }
  /** Sends these X-RateLimit headers instead of the correct ones. */
  | {
      readonly kind: "limit_headers";
      readonly limit?: string;
      readonly remaining?: string;
      readonly reset?: string;
    }
  /** Shifts the Date header of these responses, and nothing else, as a gateway or one of several servers might. */
  | { readonly kind: "wrong_date"; readonly offsetMs: number }
  | { readonly kind: "hang" }
  | { readonly kind: "reset" }
  | { readonly kind: "truncate" }
  | { readonly kind: "bad_json" }
  | { readonly kind: "html" }
  | { readonly kind: "wrong_shape" }
  /** Makes this share of a list's records invalid: an unknown status, a number out of range, no id, an unusual name. */
  | { readonly kind: "bad_records"; readonly spoiled: Share }
  /** Gives each label of a list's records and of the top lists this many different values. */
  | { readonly kind: "many_labels"; readonly values: number }
  | { readonly kind: "slow_drip"; readonly bytesPerSecond: number }
  | { readonly kind: "huge_body"; readonly bytes: number }
  | { readonly kind: "redirect"; readonly location: string }
  | { readonly kind: "lost_reply" }
  | { readonly kind: "vanished"; readonly missing: Share }
  | { readonly kind: "empty_list" }
  /** Repeats the first `records` of a list at its end, and counts them in its total. `newIds`: under ids of their own. */
  | { readonly kind: "duplicates"; readonly records: number; readonly newIds?: boolean }
  /** Gives every page of a list the records of the first page. `states` is the page number in the response. */
  | { readonly kind: "page_ignored"; readonly states: "requested" | "first" }
  /** Makes the details of this share of the nodes unreadable. They are always the same nodes. */
  | { readonly kind: "bad_details"; readonly nodes: Share; readonly answer: BadDetail }
  | { readonly kind: "stale_last_seen" }
  /** Serves GETs from a cache, which keeps each body for this long. Headers are those of the moment. */
  | { readonly kind: "cached"; readonly maxAgeMs: DurationMs }
  | { readonly kind: "region_dark"; readonly region: string }
  | { readonly kind: "clock_skew"; readonly skewMs: number };

/** The response for a node whose details can't be read: 404, 200 without a usable field, or 500. */
export type BadDetail = "not_found" | "unreadable" | "server_error";

/** One fault of a scenario. */
export interface Fault {
  /** Time from the start of the simulation until the fault begins. */
  readonly afterMs: DurationMs;
  readonly forMs: DurationMs;
  /**
   * Method, path prefix or both of the requests affected, such as `GET /v1/nodes`. Absent means every request. The
   * query belongs to the path: `GET /v1/nodes?` matches only the list. `region_dark` and `clock_skew` affect no
   * requests, so they have no match.
   */
  readonly match?: string;
  /** Share of the matching requests that are affected. Defaults to 1. */
  readonly share?: Share;
  readonly fault: FaultKind;
}

/** How often a simulated node fails, on average; Infinity means never. */
export interface FleetRates {
  /** Mean time from healthy to a fault. */
  readonly faultEveryMs: DurationMs;
  /** Share of faults that end by themselves within minutes. */
  readonly selfHealing: Share;
  /** Share of the other faults that a reboot does not fix. */
  readonly incurable: Share;
  /** Share of the outages that start and stop every few minutes instead of lasting. */
  readonly flapping: Share;
  /** Duration of a reboot. */
  readonly rebootMs: DurationMs;
  /** Mean time between two scheduled maintenance windows of a node. */
  readonly maintenanceEveryMs: DurationMs;
  /** Mean time until an operator repairs a fault that does not end by itself. */
  readonly repairMs: DurationMs;
}

/** How the fleet changes while the simulation runs. */
export interface ChurnRates {
  /** Mean time between two nodes joining the fleet; Infinity if none do. */
  readonly joinEveryMs: DurationMs;
  /** Mean time between two nodes leaving the fleet for good; Infinity if none do. */
  readonly leaveEveryMs: DurationMs;
  /** Share of reboots after which the node leaves the fleet instead of coming back. */
  readonly vanishAfterReboot: Share;
  /** Share of the other reboots after which the node stays down until an operator repairs it. */
  readonly failAfterReboot: Share;
  /** How long a node that left after a reboot is gone; Infinity means for good. */
  readonly vanishForMs: DurationMs;
  /**
   * Whether a node that returns is another machine with the same id; its `created_at` is then the time of its return.
   */
  readonly reuseIds: boolean;
}

/** A simulated network, the service in front of it, and the faults. Everything is determined by `seed`. */
export interface Scenario {
  readonly seed: number;
  readonly nodes: number;
  readonly sessions: number;
  readonly service: ServiceOptions;
  readonly rates: FleetRates;
  readonly churn: ChurnRates;
  readonly faults: readonly Fault[];
  /** API keys and their scopes (spec, section 5). */
  readonly keys: readonly { readonly key: string; readonly scopes: readonly string[] }[];
}
