import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { columnValueOf, NODE_COLUMN_ROWS, NODE_INFO, NODE_STATUS } from "../../metrics/families/node-families.ts";
import {
  LISTED_TEXT_NAMES,
  LISTED_TEXTS,
  NODE_LABELS,
  NODE_STATUSES,
  type NodeDetail,
  type NodeId,
  type NodeLabel,
  type NodeStatus,
} from "../../model/node.ts";
import type { SessionStatus } from "../../model/session.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import { NODE_SESSIONS } from "./history-sources.ts";

/** Families that show when the daemon collected, how completely, and at which intervals. */
export const COLLECTOR_FAMILIES = [
  "proxywarden_collect_last_success_timestamp_seconds",
  "proxywarden_collect_complete",
  "proxywarden_plan_interval_seconds",
  "proxywarden_plan_fresh_seconds",
] as const;
type CollectorFamily = (typeof COLLECTOR_FAMILIES)[number];

/** The times of a range query: `points` of them, every `stepMs`. */
export interface TimeGrid {
  readonly startMs: EpochMs;
  readonly stepMs: DurationMs;
  readonly points: number;
}

/** One series of the result of a range query. */
export interface RangeSeries {
  readonly labels: Readonly<Record<string, string | undefined>>;
  /** A value for each point of the grid, or NaN if there is no sample. */
  readonly values: Float64Array;
}

/** The history of the fleet at some points in time. */
export class HistoryChunk {
  readonly grid: TimeGrid;
  /** Names of the families that have samples of nodes. */
  readonly families = new Set<string>();
  /** Labels that have a value on at least one node. */
  readonly labels = new Set<NodeLabel>();
  /** The series of each node, by family. */
  readonly #nodes = new Map<NodeId, Map<string, RangeSeries[]>>();
  readonly #collectors = new Map<string, Float64Array>();
  #scrapedAt: Float64Array | null = null;

  constructor(grid: TimeGrid) {
    this.grid = grid;
  }

  /** Adds a series of one node. */
  addNode(family: string, series: RangeSeries): void {
    this.families.add(family);
    const { node_id: id = "" } = series.labels;
    const node = this.#nodes.get(id) ?? new Map<string, RangeSeries[]>();
    this.#nodes.set(id, node);
    node.set(family, [...(node.get(family) ?? []), series]);
    if (family === NODE_INFO.name) for (const label of NODE_LABELS) if (series.labels[label]) this.labels.add(label);
  }

  /** Adds a series of one of {@link COLLECTOR_FAMILIES}. */
  addCollector({ labels, values }: RangeSeries): void {
    this.#collectors.set(`${labels.__name__} ${labels.collector}`, values);
  }

  /** Adds the series of the times at which the daemon was scraped, in seconds. */
  addScrapeTimes({ values }: RangeSeries): void {
    this.#scrapedAt = values;
  }

  /** Returns when the daemon was scraped, or NaN if unknown, because the history lacks the daemon's own metrics. */
  scrapedAt(point: number): EpochMs {
    return (this.#scrapedAt?.[point] ?? Number.NaN) * SECOND_MS;
  }

  /** Returns the sample of a collector in the daemon's own metrics, or NaN if there is none. */
  collector(family: CollectorFamily, collector: Collector, point: number): number {
    return this.#collectors.get(`${family} ${collector}`)?.[point] ?? Number.NaN;
  }

  /** Yields the nodes that the history shows at a point. */
  *nodesAt(point: number): Iterable<HistoricalNode> {
    for (const [id, series] of this.#nodes) {
      const shownOf = (family: string) => series.get(family)?.findLast(({ values }) => !Number.isNaN(values[point]));
      const status = shownOf(NODE_STATUS.name)?.labels.status as NodeStatus;
      if (!NODE_STATUSES.includes(status)) continue;
      const node: Record<string, unknown> = { id, status };
      const labels = shownOf(NODE_INFO.name)?.labels ?? {};
      for (const text of LISTED_TEXT_NAMES) node[text] = labels[LISTED_TEXTS[text]] || null;
      for (const row of NODE_COLUMN_ROWS) {
        const sample = shownOf(row.name)?.values[point];
        node[row.column] = sample === undefined ? null : columnValueOf(row, sample);
      }
      // Either the series or the sample may be missing.
      node.sessions = (wanted: SessionStatus) =>
        series.get(NODE_SESSIONS)?.find((each) => each.labels.status === wanted)?.values[point] || 0;
      yield node as unknown as HistoricalNode;
    }
  }
}

/** A node at one point. Values without a sample are null. */
export interface HistoricalNode extends NodeDetail {
  /** When its detail was read. */
  readonly detailedAtEpochMs: EpochMs | null;
  /** Returns the number of sessions with a status, or 0 if there is no sample. */
  sessions(status: SessionStatus): number;
}
