import { byName } from "../../base/by-name.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { Inventory } from "../../inventory/inventory.ts";
import type { NodeId } from "../../model/node.ts";
import { SESSION_STATUSES } from "../../model/session.ts";
import { COLLECTORS, type Collector, type SessionSummary, type Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { type CollectorPlan, FRESH_INTERVALS, type Plan } from "../../scheduling/planner.ts";
import type { HistoricalNode, HistoryChunk } from "./history-chunk.ts";
import { COMPARABLE_STATUSES, NODE_SESSIONS } from "./history-sources.ts";

/** The fleet at one point of the history, as the daemon would have seen it. */
export interface ReplayedPoint {
  readonly snapshot: Snapshot;
  readonly plan: Plan;
}

/** Prometheus shows the last sample for this long, so targets must be scraped at least this often. */
export const LOOKBACK_MS: DurationMs = 5 * MINUTE_MS;

/** Brings an inventory up to date with the history, point by point. */
export class ReplayedFleet {
  readonly inventory = new Inventory("ratio");
  /** The last name of each node that has one. */
  readonly names = new Map<NodeId, string>();
  readonly #startMs: EpochMs;
  /** The nodes of the fleet, with the time at which their last detail was read. */
  readonly #detailedAt = new Map<NodeId, MonotonicMs>();
  #sequence = 0;
  #scrapedAt: EpochMs = Number.NEGATIVE_INFINITY;
  /** How often each time between two scrapes has occurred, by its length in seconds. */
  readonly #scrapeIntervals = new Map<number, number>();
  #walkedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  #sessionsWalkedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  #sessions: SessionSummary | null = null;

  /** `startMs` is the time of the first point, at which the monotonic clock shows 0. */
  constructor(startMs: EpochMs) {
    this.#startMs = startMs;
  }

  /**
   * Moves to a point of a chunk, and returns what the daemon saw since the last one, in order. The result is empty if
   * nothing new was scraped. While the history shows the daemon but no node, the daemon saw nothing new, and the nodes
   * keep their values.
   */
  advance(chunk: HistoryChunk, point: number): readonly ReplayedPoint[] {
    const at = chunk.grid.startMs + point * chunk.grid.stepMs - this.#startMs;
    const nodes = [...chunk.nodesAt(point)];
    if (!this.#isScraped(chunk, point, nodes.length > 0)) return [];
    const plan = planAt(chunk, point, this.resolutionMs(chunk));
    const points: ReplayedPoint[] = [];
    const add = () => points.push({ snapshot: this.#snapshot(at), plan });
    const walkedAt = this.#timeOf(successOf(chunk, "nodes", point), at);
    const isNewWalk = walkedAt > this.#walkedAt;
    // A timer starts at the newest data, so a detail is evaluated before a later walk.
    if (isNewWalk && this.#recordDetails(nodes, walkedAt)) add();
    if (isNewWalk) {
      for (const node of nodes) this.#recordListed(node, walkedAt);
      this.#endWalk(nodes, walkedAt, chunk.collector("proxywarden_collect_complete", "nodes", point) !== 0);
    }
    this.#recordDetails(nodes, at);
    this.#recordSessions(chunk, point, nodes, at);
    add();
    return points;
  }

  /**
   * Returns the time between two observations: the step of the chunk, or the median of the scrape intervals so far if
   * it is longer.
   */
  resolutionMs({ grid }: Pick<HistoryChunk, "grid">): DurationMs {
    return Math.max(grid.stepMs, medianOf(this.#scrapeIntervals) * SECOND_MS);
  }

  /**
   * Returns whether a point shows a new scrape, and nodes are known. Prometheus shows the last scrape for
   * {@link LOOKBACK_MS}. Without the daemon's own metrics, every point with nodes is a new scrape.
   */
  #isScraped(chunk: HistoryChunk, point: number, hasNodes: boolean): boolean {
    const scrapedAt = chunk.scrapedAt(point);
    if (Number.isNaN(scrapedAt)) return hasNodes;
    const isNew = scrapedAt > this.#scrapedAt;
    const sinceLastMs = scrapedAt - this.#scrapedAt;
    if (isNew && sinceLastMs <= LOOKBACK_MS) {
      const seconds = Math.round(sinceLastMs / SECOND_MS);
      this.#scrapeIntervals.set(seconds, (this.#scrapeIntervals.get(seconds) ?? 0) + 1);
    }
    this.#scrapedAt = scrapedAt;
    return isNew && (hasNodes || this.#detailedAt.size > 0);
  }

  #snapshot(at: MonotonicMs): Snapshot {
    const fleet = this.inventory.currentFleet();
    return { sequence: ++this.#sequence, at, fleet, sessions: this.#sessions, stats: null, hourly: null };
  }

  #recordListed(node: HistoricalNode, walkedAt: MonotonicMs): void {
    const detailedAt = this.#detailedAt.get(node.id) ?? Number.NEGATIVE_INFINITY;
    this.#detailedAt.set(node.id, detailedAt);
    if (node.name !== null) this.names.set(node.id, node.name);
    this.inventory.recordListed(node, Math.max(walkedAt, detailedAt));
  }

  /**
   * Records the details of known nodes that were read since the last ones and before `until`. Returns whether there
   * were any.
   */
  #recordDetails(nodes: readonly HistoricalNode[], until: MonotonicMs): boolean {
    let hasAny = false;
    for (const node of nodes) {
      const { id, detailedAtEpochMs } = node;
      const lastReadAt = this.#detailedAt.get(id);
      if (detailedAtEpochMs === null || lastReadAt === undefined) continue;
      const readAt = detailedAtEpochMs - this.#startMs;
      if (readAt > until || readAt <= lastReadAt) continue;
      hasAny = true;
      this.#detailedAt.set(id, readAt);
      this.inventory.recordDetail(node, readAt, detailedAtEpochMs);
    }
    return hasAny;
  }

  #recordSessions(chunk: HistoryChunk, point: number, nodes: readonly HistoricalNode[], at: MonotonicMs): void {
    const walkedAt = this.#timeOf(successOf(chunk, "sessions", point), at);
    if (walkedAt <= this.#sessionsWalkedAt || !chunk.families.has(NODE_SESSIONS)) return;
    this.#sessionsWalkedAt = walkedAt;
    const isComplete = chunk.collector("proxywarden_collect_complete", "sessions", point) !== 0;
    // Policies that read sessions act only right after a walk, so the walk is taken to have ended at this point.
    this.#sessions = summarizeSessions(nodes, at, isComplete);
  }

  /**
   * Nodes that the history no longer shows after a complete walk are gone: the daemon exports a node until it is sure
   * of that. After a walk that was cut they keep their values, because the daemon stops exporting values that are too
   * old.
   */
  #endWalk(nodes: readonly HistoricalNode[], walkedAt: MonotonicMs, isComplete: boolean): void {
    const shown = new Set(nodes.map(({ id }) => id));
    for (const id of isComplete ? this.#detailedAt.keys() : []) {
      if (shown.has(id)) continue;
      this.inventory.recordLookup(id, "gone", walkedAt);
      this.#detailedAt.delete(id);
    }
    this.#walkedAt = walkedAt;
    const counts = { total: shown.size, seen: shown.size, rejected: 0, maxMissing: 0, observedFrom: walkedAt };
    this.inventory.endWalk({ ...counts, end: isComplete ? "exact" : "cut" }, walkedAt);
  }

  /** Converts a time of the history, at most `at`. If it is NaN, returns `at`. */
  #timeOf(epochMs: EpochMs, at: MonotonicMs): MonotonicMs {
    return Number.isNaN(epochMs) ? at : Math.min(at, epochMs - this.#startMs);
  }
}

const successOf = (chunk: HistoryChunk, collector: Collector, point: number): EpochMs =>
  chunk.collector("proxywarden_collect_last_success_timestamp_seconds", collector, point) * SECOND_MS;

function summarizeSessions(nodes: readonly HistoricalNode[], at: MonotonicMs, complete: boolean): SessionSummary {
  const none = new Float64Array(nodes.length);
  const counts = SESSION_STATUSES.map((status) =>
    COMPARABLE_STATUSES.includes(status)
      ? Float64Array.from(nodes, (node) => node.sessions(status))
      : new Float64Array(nodes.length).fill(Number.NaN),
  );
  const columns = { counts, recent: counts, sentBytes: none, receivedBytes: none };
  return {
    settledAt: at,
    observedFrom: at,
    complete,
    failedListed: false,
    counts: none,
    countries: new Map(),
    customers: [],
    durations: [],
    nodes: {
      slots: nodes.length,
      ids: nodes.map(({ id }) => id),
      ...columns,
      quietWalks: new Uint8Array(nodes.length),
      isFolded: false,
      isUnassigned: false,
    },
  };
}

/**
 * Returns the plan of the daemon at a point. Data is observed every `resolutionMs`, and therefore counts as fresh for at
 * least three times that.
 */
function planAt(chunk: HistoryChunk, point: number, resolutionMs: DurationMs): Plan {
  return byName(COLLECTORS, (collector): CollectorPlan => {
    const intervalMs = atLeast(resolutionMs, chunk.collector("proxywarden_plan_interval_seconds", collector, point));
    const fresh = chunk.collector("proxywarden_plan_fresh_seconds", collector, point);
    return {
      requestedMs: intervalMs,
      intervalMs,
      pacedMs: intervalMs,
      freshMs: Number.isNaN(fresh) ? FRESH_INTERVALS * intervalMs : atLeast(FRESH_INTERVALS * resolutionMs, fresh),
      slowdown: 1,
      boundBy: null,
      callsPerMinute: 0,
      age: { medianMs: 0, worstMs: intervalMs },
    };
  });
}

/** Returns the median of values, given how often each occurs, or 0 if there are none. */
function medianOf(counts: ReadonlyMap<number, number>): number {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [value, count] of [...counts].toSorted(([a], [b]) => a - b)) {
    below += count;
    if (2 * below >= total) return value;
  }
  return 0;
}

/** Converts a sample in seconds to milliseconds, at least `min`. A missing sample becomes `min`. */
const atLeast = (min: DurationMs, seconds: number): DurationMs =>
  Number.isNaN(seconds) ? min : Math.max(min, seconds * SECOND_MS);
