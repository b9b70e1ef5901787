import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { DetailNumber, ListedNumber, ListedText } from "./node.ts";
import type { HourlyEntry, SessionStatistics } from "./session.ts";
import type { MonotonicMs } from "./time.ts";

/**
 * The five things that are collected; also the values of the label `collector`. Each has its own interval, its own
 * age and its own failures.
 */
export const COLLECTORS = ["nodes", "details", "sessions", "stats", "hourly"] as const;
export type Collector = (typeof COLLECTORS)[number];

/**
 * The nodes, in columns: index `slot` of every column is about the node `ids[slot]`. A slot whose id is "" is empty
 * and its other columns mean nothing. A node keeps its slot for as long as it is in the fleet, so two snapshots can be
 * compared column by column. A missing number is NaN, a missing string "". Usages are ratios by the declared scale, and
 * NaN throughout while {@link usageKnown} is false. A published Fleet is never modified.
 */
export interface Fleet
  extends Readonly<Record<ListedNumber | DetailNumber, Float64Array> & Record<TextColumn, readonly string[]>> {
  /** Length of every column. */
  readonly slots: number;
  /** Nodes in the fleet; slots less empty ones. */
  readonly count: number;
  readonly ids: readonly string[];
  /** Indexes into {@link locations}. */
  readonly locationIndex: Uint32Array;
  /** Every pair of country and region that was seen and is not yet gone. */
  readonly locations: readonly Location[];
  /** Indexes into NODE_STATUSES. */
  readonly status: Uint8Array;
  /** When the list record was observed: MonotonicMs. */
  readonly listedAt: Float64Array;
  /** When the detail was observed: MonotonicMs; NaN: never. */
  readonly detailedAt: Float64Array;
  /** The same instant as {@link detailedAt} on our wall clock: EpochMs; NaN: never. */
  readonly detailedAtEpochMs: Float64Array;
  /** False while no scale is declared, or after a value contradicted the declared one. */
  readonly usageKnown: boolean;
  /** When the last complete walk ended; null before the first. */
  readonly settledAt: MonotonicMs | null;
  /** When the last walk ended that showed anything, complete or not; null before the first. */
  readonly walkedAt: MonotonicMs | null;
  /** The walk that ended last; null before the first. */
  readonly lastWalk: WalkResult | null;
}

/** Text fields with a column of their own; country and region are columns of the locations. */
export type TextColumn = Exclude<ListedText, keyof Location>;

/** How a walk of the nodes ended. */
export interface WalkResult {
  /** Whether it was read to its end and missed no more nodes than `safety.trust.max_missing` allows. */
  readonly complete: boolean;
  /** Complete walks up to this one. */
  readonly completeWalks: number;
  /** Nodes that it showed. */
  readonly seenNodes: number;
  /** Nodes that the list counts, or that were known before, and that it did not show; or that it showed over its total. */
  readonly missing: number;
  /** Nodes that the list counts. */
  readonly total: number;
  /** Whether it was given up before the end of the list. */
  readonly isAborted: boolean;
  /** Records of it that could not be read. */
  readonly rejected: number;
  readonly at: MonotonicMs;
}

/** Location of nodes; "" if a record has none. */
export interface Location {
  readonly country: string;
  readonly region: string;
}

/** Cumulative histogram as Prometheus counts it. `counts[i]` observations were at most `SESSION_DURATION_BUCKETS[i]`. */
export interface Histogram {
  readonly counts: Float64Array;
  readonly count: number;
  readonly sum: number;
}

/** Upper bounds in seconds of `proxynet_session_duration_seconds`, without +Inf: a second to a day. */
export const SESSION_DURATION_BUCKETS_SECONDS = [1, 5, 15, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400] as const;

/** Totals of the sessions; single sessions are not kept. */
export interface SessionSummary {
  /** When the walk of these counts ended. */
  readonly settledAt: MonotonicMs;
  /** Whether that walk accounted for all sessions. No policy reads sessions where it did not. */
  readonly complete: boolean;
  /** `counts[status * SESSION_TYPES.length + type]`, both as indexes of the model's lists. */
  readonly counts: Float64Array;
  /** Whether the list has ever shown a session that ended by error or timeout: until then failures are unknown, not 0. */
  readonly failedListed: boolean;
  /** Sessions by country; "": sessions without a country. */
  readonly countries: ReadonlyMap<string, number>;
  /** Sessions by customer, all of them, most first. */
  readonly customers: readonly { readonly customerId: string; readonly sessions: number }[];
  readonly nodes: SessionNodes;
  /** One histogram a session type, in the order of SESSION_TYPES: sessions that left the list, by last seen duration. */
  readonly durations: readonly Histogram[];
}

/** A session counts as recent for this long after its end. */
export const RECENT_SESSION_MS: DurationMs = 5 * MINUTE_MS;

/** Sessions by node, in columns with the same rules of slots as {@link Fleet}. */
export interface SessionNodes {
  readonly slots: number;
  readonly ids: readonly string[];
  /** One column a session status, in the order of SESSION_STATUSES. */
  readonly counts: readonly Float64Array[];
  /** The same without those that ended more than {@link RECENT_SESSION_MS} before: a list may show them for days. */
  readonly recent: readonly Float64Array[];
  /**
   * Complete walks in a row that met no failure of the node that was both new and of the last minute, as far as its times
   * tell; 0: the last one did, so that its sessions fail now. Failures stay listed after a node is well again.
   */
  readonly quietWalks: Uint8Array;
  /** Bytes that sessions of the node were seen to gain since this process started. */
  readonly sentBytes: Float64Array;
  readonly receivedBytes: Float64Array;
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
