import type { DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";

/** How the simulated service counts requests (the spec names limits, not the algorithm). */
export type LimiterKind = "token_bucket" | "fixed_window" | "sliding_window";

/** Orders of the node list beside that of joining: each field of the list, and when a node was created or changed. */
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

/** Orders of the session list. */
export const SESSION_ORDERS = [
  "id",
  "customer_id",
  "node_id",
  "status",
  "started_at",
  "bytes_sent",
  "bytes_received",
] as const;

/** A field in ascending order, or with `-` before it in descending order. */
export type Ordering<Field extends string> = Field | `-${Field}`;

/** How one of the lists is served. */
export interface ListOptions<Order extends string> {
  readonly order: Order;
  /** A page that begins after so many records is answered with 400; Infinity: none is. */
  readonly recordsMax: number;
  /** Whether `total` counts the records of the list or those of the page. */
  readonly totalCounts: "list" | "page";
  /** `total` counts the list as it was so long ago, to the second. */
  readonly totalLagMs: DurationMs;
  /** Added to `total`, which is 0 at least. */
  readonly totalOffBy: number;
  /** Stated as `total`, whatever the list holds. */
  readonly totalFixed?: number;
}

/** Every choice that the spec leaves open. The client must work under each of them. */
export interface ServiceOptions {
  readonly limiter: LimiterKind;
  /** `off`: no X-RateLimit headers at all but on a 429. `category` or `plan`: whose numbers they state. */
  readonly rateLimitHeaders: "category" | "plan" | "off";
  /** Number of the first page. */
  readonly firstPage: 0 | 1;
  readonly pageLimitDefault: number;
  readonly pageLimitMax: number;
  /** What a `limit` over `pageLimitMax` gets: fewer records than asked for, or a 4xx. */
  readonly pageLimitOver: "clamp" | "reject";
  /** Whether a clamped page echoes the limit in force or the one asked for. */
  readonly pageLimitEcho: "effective" | "requested";
  readonly usageScale: "ratio" | "percent";
  /** `code`: {error, message}; `nested`: {error: {code, message}}; `text`: text/plain; `empty`: no body. */
  readonly errorBody: "code" | "nested" | "text" | "empty";
  /** What reboot and disconnect answer: a body like quarantine's, an empty JSON object, or 204 with no body. */
  readonly actionReply: "success" | "empty_object" | "no_content";
  /** Whether sessions that ended by error or timeout (and closed ones) stay in the list for a while. */
  readonly listEndedSessions: boolean;
  readonly plan: "starter" | "business" | "enterprise";
  /** Whether a call over the concurrent cap or the monthly cap gets 429 or 403. */
  readonly planCapStatus: 429 | 403;
  /**
   * How bodies are compressed: `off`: not; `accepted`: with gzip where Accept-Encoding names it; `gzip` and `br`: with
   * that, whatever was asked for.
   */
  readonly compression: "off" | "accepted" | "gzip" | "br";
  /** Whether X-RateLimit-Reset of a token bucket names the moment it is full or the next token. */
  readonly tokenBucketReset: "full" | "next_token";
  /** `joined`: in the order of joining the fleet, oldest first. */
  readonly nodeList: ListOptions<"joined" | Ordering<(typeof NODE_ORDERS)[number]>>;
  readonly sessionList: ListOptions<Ordering<(typeof SESSION_ORDERS)[number]>>;
}

/** What a fault does to the requests it matches, or to the network behind them. */
export type FaultKind =
  | {
      readonly kind: "status";
      readonly status: number;
      /** The Retry-After header as it stands. */
      readonly retryAfter?: string;
      /** Retry-After as an HTTP-date, so much later than the answer on the clock of the service. Instead of `retryAfter`. */
      readonly retryAfterDateMs?: DurationMs;
      /** Answered by a gateway in front of the service: without X-RateLimit headers, and not counted by the service. */
      readonly bare?: boolean;
    }
  /** A gateway in front of the service limits requests: a token bucket, whose 429 carries no X-RateLimit headers. */
  | {
      readonly kind: "gateway_limit";
      readonly requestsPerMinute: number;
      readonly burst: number;
      /** Seconds in the Retry-After header of its 429; absent: no such header. */
      readonly retryAfterSeconds?: number;
    }
  /** States these X-RateLimit headers, as they stand, in place of the true ones. */
  | {
      readonly kind: "limit_headers";
      readonly limit?: string;
      readonly remaining?: string;
      readonly reset?: string;
    }
  | { readonly kind: "hang" }
  | { readonly kind: "reset" }
  | { readonly kind: "truncate" }
  | { readonly kind: "bad_json" }
  | { readonly kind: "html" }
  | { readonly kind: "wrong_shape" }
  /** That share of the records of a list is spoiled: an unknown status, a number out of range, no id, an awkward name. */
  | { readonly kind: "bad_records"; readonly share: Share }
  /** The records of a list, and the top lists of the statistics, take so many different values in each label. */
  | { readonly kind: "many_labels"; readonly values: number }
  | { readonly kind: "slow_drip"; readonly bytesPerSecond: number }
  | { readonly kind: "huge_body"; readonly bytes: number }
  | { readonly kind: "redirect"; readonly location: string }
  | { readonly kind: "lost_reply" }
  | { readonly kind: "vanished"; readonly share: Share }
  | { readonly kind: "empty_list" }
  /** The first `records` of a list are listed again at its end, and counted in its total. */
  | { readonly kind: "duplicates"; readonly records: number }
  /** Every page of a list holds the records of the first page. `states`: the page number in the answer. */
  | { readonly kind: "page_ignored"; readonly states: "requested" | "first" }
  /** The details of that share of the nodes can't be read; always those of the same nodes. */
  | { readonly kind: "bad_details"; readonly share: Share; readonly answer: BadDetail }
  | { readonly kind: "stale_last_seen" }
  | { readonly kind: "region_dark"; readonly region: string }
  | { readonly kind: "clock_skew"; readonly skewMs: number };

/** The answer to the read of a node whose details can't be read: 404, 200 without a usable field, or 500. */
export type BadDetail = "not_found" | "unreadable" | "server_error";

/** One fault of a scenario. */
export interface Fault {
  /** From the start of the simulation. */
  readonly afterMs: DurationMs;
  readonly forMs: DurationMs;
  /**
   * Method, path prefix or both that are hit, such as `GET /v1/nodes`; absent: every request. The query belongs to the
   * path: `GET /v1/nodes?` hits only the list. `region_dark` and `clock_skew` affect no requests, so they have no match.
   */
  readonly match?: string;
  /** Share of the matching requests that are hit; 1 if absent. */
  readonly share?: Share;
  readonly fault: FaultKind;
}

/** How often things happen to one simulated node, on average; Infinity: never. */
export interface FleetRates {
  /** Mean time from healthy to a fault. */
  readonly faultEveryMs: DurationMs;
  /** Share of faults that end without help, within minutes. */
  readonly selfHealing: Share;
  /** Share of the others that no reboot heals. */
  readonly incurable: Share;
  /** Share of the outages that come and go every few minutes instead of staying. */
  readonly flapping: Share;
  /** How long a reboot takes. */
  readonly rebootMs: DurationMs;
  /** Mean time between two scheduled maintenances of a node. */
  readonly maintenanceEveryMs: DurationMs;
  /** Mean time until an operator repairs a fault that no reboot heals. */
  readonly repairMs: DurationMs;
}

/** How the fleet changes while the simulation runs. */
export interface ChurnRates {
  /** Mean time between two nodes joining the fleet; Infinity: none joins. */
  readonly joinEveryMs: DurationMs;
  /** Mean time between two nodes leaving the fleet for good; Infinity: none leaves. */
  readonly leaveEveryMs: DurationMs;
  /** Share of reboots at whose end the node leaves the fleet instead of coming back up. */
  readonly vanishAfterReboot: Share;
  /** How long such a node is gone; Infinity: for good. */
  readonly vanishForMs: DurationMs;
  /** Whether a node that returns is another machine under the same id: its `created_at` is then the time of its return. */
  readonly reuseIds: boolean;
}

/** A simulated network, the service in front of it, and what goes wrong. Everything follows from `seed`. */
export interface Scenario {
  readonly seed: number;
  readonly nodes: number;
  readonly sessions: number;
  readonly service: ServiceOptions;
  readonly rates: FleetRates;
  readonly churn: ChurnRates;
  readonly faults: readonly Fault[];
  /** API keys and the scopes that each carries (spec, section 5). */
  readonly keys: readonly { readonly key: string; readonly scopes: readonly string[] }[];
}
