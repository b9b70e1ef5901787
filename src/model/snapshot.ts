import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { NumberColumn } from "../base/number-column.ts";
import type { DetailNumber, ListedNumber, ListedText } from "./node.ts";
import type { HourlyEntry, SessionStatistics } from "./session.ts";
import type { MonotonicMs } from "./time.ts";

/** The collectors, which are also the values of the label `collector`. Each has its own interval, age and failures. */
export const COLLECTORS = ["nodes", "details", "sessions", "stats", "hourly"] as const;
export type Collector = (typeof COLLECTORS)[number];

/**
 * The nodes, in columns. Index `slot` of every column belongs to the node `ids[slot]`. A slot with the id "" is empty,
 * and its other values are unspecified. A node keeps its slot while it is in the fleet, so two snapshots can be compared
 * column by column. A missing number is NaN, a missing string "". Usages are ratios, and all of them are NaN while
 * {@link usageKnown} is false. A published fleet is never modified.
 */
export interface Fleet
  extends Readonly<Record<ListedNumber | DetailNumber, NumberColumn> & Record<TextColumn, readonly string[]>> {
  /** Length of every column. */
  readonly slots: number;
  /** Number of nodes, which is the number of slots that are not empty. */
  readonly count: number;
  readonly ids: readonly string[];
  /** Indexes into {@link locations}. */
  readonly locationIndex: Uint32Array;
  /** The pairs of country and region that nodes refer to. Unused pairs are removed when a walk ends. */
  readonly locations: readonly Location[];
  /** Indexes into NODE_STATUSES. */
  readonly status: Uint8Array;
  /**
   * When the fields of the list form were last observed, in a list, a lookup or a detail, in MonotonicMs. This is when
   * they were requested, since a response may be delayed.
   */
  readonly listedAt: NumberColumn;
  /**
   * When a record last stated a known status that the following record did not, in MonotonicMs, or NaN if never. That
   * record was observed before the current one, or has an earlier last_seen.
   */
  readonly otherStatusAt: NumberColumn;
  /** When the detail was observed, in MonotonicMs, or NaN if never. */
  readonly detailedAt: NumberColumn;
  /** The same time as {@link detailedAt} by the daemon's wall clock, in EpochMs, or NaN if never. */
  readonly detailedAtEpochMs: NumberColumn;
  /** The last_seen of the detail, which is earlier than that of the list if a cache or an outdated replica answered. */
  readonly detailLastSeenMs: NumberColumn;
  /** False if no scale is declared, or a value contradicted it. */
  readonly usageKnown: boolean;
  /** When the last complete walk ended, or null before the first one. */
  readonly settledAt: MonotonicMs | null;
  /**
   * When the first page of that walk was observed, or null before the first complete walk. The walk did not show nodes
   * whose `listedAt` is earlier.
   */
  readonly settledFrom: MonotonicMs | null;
  /** End of the last walk that either reached the end of the list or showed a node; null before the first. */
  readonly walkedAt: MonotonicMs | null;
  /** Result of the last walk, or null before the first. */
  readonly lastWalk: WalkResult | null;
}

/** Text fields with a column of their own. Country and region are part of the locations instead. */
export type TextColumn = Exclude<ListedText, keyof Location>;

/** Result of a walk of the nodes. */
export interface WalkResult {
  /** Whether it reached the end of the list and missed no more nodes than `safety.trust.max_missing` allows. */
  readonly complete: boolean;
  /** Number of complete walks up to this one. */
  readonly completeWalks: number;
  /** Number of those that read every page. */
  readonly fullWalks: number;
  /** Number of nodes that it showed. */
  readonly seenNodes: number;
  /**
   * Number of nodes that it did not show although the list counts them or they were known before; or, if larger, the
   * number of records that it showed beyond the list's total.
   */
  readonly missing: number;
  /** Number of nodes according to the list. */
  readonly total: number;
  /**
   * Whether it stopped before the end of the list, or a page could not be read. If so, the nodes that it did not show
   * may still exist.
   */
  readonly isAborted: boolean;
  /** Number of records that could not be read. */
  readonly rejected: number;
  readonly at: MonotonicMs;
}

/** Location of nodes; "" if a record has none. */
export interface Location {
  readonly country: string;
  readonly region: string;
}

/**
 * Cumulative histogram as in Prometheus. `counts[i]` is the number of observations of at most
 * `SESSION_DURATION_BUCKETS_SECONDS[i]`.
 */
export interface Histogram {
  readonly counts: Float64Array;
  readonly count: number;
  readonly sum: number;
}

/** Upper bounds in seconds of `proxynet_session_duration_seconds`, without +Inf: a second to a day. */
export const SESSION_DURATION_BUCKETS_SECONDS = [1, 5, 15, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400] as const;

/** Totals of the sessions. Individual sessions are not kept. */
export interface SessionSummary {
  /** When the walk that produced the counts ended. */
  readonly settledAt: MonotonicMs;
  /** When the first page of that walk was requested. No count is older. */
  readonly observedFrom: MonotonicMs;
  /** Whether that walk was complete. If not, the sessions of nodes are unknown to policies. */
  readonly complete: boolean;
  /**
   * Count of each status and type, at `status * SESSION_TYPES.length + type`. Both are indexes into SESSION_STATUSES
   * and SESSION_TYPES.
   */
  readonly counts: Float64Array;
  /**
   * Whether the list has ever shown a failed session (error or timeout). Until then the number of failures is unknown,
   * not 0.
   */
  readonly failedListed: boolean;
  /** Sessions by country. The key "" is for sessions without a country. */
  readonly countries: ReadonlyMap<string, number>;
  /** Customers, in descending order of their sessions. */
  readonly customers: readonly { readonly customerId: string; readonly sessions: number }[];
  readonly nodes: SessionNodes;
  /** One histogram per session type, in the order of SESSION_TYPES: ended sessions by their last reported duration. */
  readonly durations: readonly Histogram[];
}

/** A session counts as recent for this long after its end. */
export const RECENT_SESSION_MS: DurationMs = 5 * MINUTE_MS;

/** Sessions by node, in columns with the same slot rules as {@link Fleet}. */
export interface SessionNodes {
  readonly slots: number;
  readonly ids: readonly string[];
  /**
   * One column per session status, in the order of SESSION_STATUSES. A column that may have missing counts (NaN) is a
   * Float64Array.
   */
  readonly counts: readonly (Uint32Array | Float64Array)[];
  /** The same without sessions that ended more than {@link RECENT_SESSION_MS} ago, which a list may show for days. */
  readonly recent: readonly (Uint32Array | Float64Array)[];
  /**
   * Number of consecutive complete walks that showed no new failure, which is a session of the node that failed within
   * the last minute. If the last walk was complete, 0 means that it showed one, so the node's sessions are failing. The
   * counts do not show this, because failed sessions stay listed after the node recovers.
   */
  readonly quietWalks: Uint8Array;
  /** Bytes of the node's sessions since this process started. */
  readonly sentBytes: Float64Array;
  readonly receivedBytes: Float64Array;
  /**
   * Whether sessions of the fleet's nodes may be counted under `other`, because the walk began before the fleet was
   * known and its sessions named too many nodes. If so, the sessions of a node without a row are unknown; otherwise it
   * has none.
   */
  readonly isFolded: boolean;
  /** Whether so many sessions named no node of the fleet that those of every node are unknown. */
  readonly isUnassigned: boolean;
}

/** A value and the time of its observation. */
export interface Dated<T> {
  readonly value: T;
  readonly at: MonotonicMs;
}

/** All data at one time. Immutable, and replaced as a whole, so that readers never see a partial update. */
export interface Snapshot {
  /** Increases by one with each snapshot of this process. */
  readonly sequence: number;
  readonly at: MonotonicMs;
  readonly fleet: Fleet;
  readonly sessions: SessionSummary | null;
  readonly stats: Dated<SessionStatistics> | null;
  readonly hourly: Dated<readonly HourlyEntry[]> | null;
}
