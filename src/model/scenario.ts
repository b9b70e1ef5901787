import type { DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";

/** How the simulated service counts requests (the spec names limits, not the algorithm). */
export type LimiterKind = "token_bucket" | "fixed_window" | "sliding_window";

/** Every choice that the spec calls "not shown". The client must work under each of them. */
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
  | { readonly kind: "stale_last_seen" }
  | { readonly kind: "region_dark"; readonly region: string }
  | { readonly kind: "clock_skew"; readonly skewMs: number };

/** One line of the fault script. */
export interface Fault {
  /** From the start of the simulation. */
  readonly afterMs: DurationMs;
  readonly forMs: DurationMs;
  /**
   * Method, path prefix or both that are hit, such as `GET /v1/nodes`; absent: every request. The query belongs to the
   * path: `GET /v1/nodes?` hits the list alone. A dark region and a skewed clock are no requests: they have no match.
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
  /** Share of faults that pass by themselves, within some minutes. */
  readonly selfHealing: Share;
  /** Share of the rest that no reboot heals. */
  readonly incurable: Share;
  /** Share of the outages that come and go every few minutes instead of staying. */
  readonly flapping: Share;
  /** How long a reboot takes. */
  readonly rebootMs: DurationMs;
  /** Mean time from one scheduled maintenance of a node to the next. */
  readonly maintenanceEveryMs: DurationMs;
  /** Mean time until a person mends a fault that does not pass by itself: what reboots don't heal ends only so. */
  readonly repairMs: DurationMs;
}

/** A simulated network, the service in front of it, and what goes wrong. Everything follows from `seed`. */
export interface Scenario {
  readonly seed: number;
  readonly nodes: number;
  readonly sessions: number;
  readonly service: ServiceOptions;
  readonly rates: FleetRates;
  readonly faults: readonly Fault[];
  /** API keys and the scopes that each carries (spec, section 5). */
  readonly keys: readonly { readonly key: string; readonly scopes: readonly string[] }[];
}
