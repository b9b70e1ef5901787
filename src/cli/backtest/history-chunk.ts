import { byName } from "../../base/by-name.ts";
import { SECOND_MS } from "../../base/duration.ts";
import { type ColumnRow, columnValueOf, NODE_INFO, NODE_STATUS } from "../../metrics/families/node-families.ts";
import { NODE_LABELS, NODE_STATUSES, type NodeId, type NodeLabel, type NodeStatus } from "../../model/node.ts";
import type { SessionStatus } from "../../model/session.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import type { RangeSeries, TimeGrid } from "./history-reader.ts";
import { NODE_SESSIONS } from "./history-sources.ts";

/** Labels of a node's info, or null if the history has none. */
type NodeLabels = Readonly<Record<NodeLabel, string | null>>;

/** Families that say when and how the daemon collected, which determines how old and how complete values are. */
export const COLLECTOR_FAMILIES = [
  "proxywarden_collect_last_success_timestamp_seconds",
  "proxywarden_collect_complete",
  "proxywarden_plan_interval_seconds",
  "proxywarden_plan_fresh_seconds",
] as const;
type CollectorFamily = (typeof COLLECTOR_FAMILIES)[number];

const NO_STATUS = 255;
const NO_LABELS = byName(NODE_LABELS, () => null);

/** Creates an empty history of a node. Arrays have an element for each point of the chunk, NaN if there is no sample. */
const createNodeHistory = (points: number) => ({
  /** Indexes into NODE_STATUSES; {@link NO_STATUS} if the history does not show the node at this point. */
  status: new Uint8Array(points).fill(NO_STATUS),
  /** Indexes into the chunk's labels; 0 if the node has none at this point. */
  labels: new Uint32Array(points),
  columns: new Map<ColumnRow["column"], Float64Array>(),
  sessions: new Map<SessionStatus, Float64Array>(),
});

/** The history of the fleet at some points in time. */
export class HistoryChunk {
  readonly grid: TimeGrid;
  /** Names of the families that have samples of nodes. */
  readonly families = new Set<string>();
  /** Labels that have a value on at least one node. */
  readonly labels = new Set<NodeLabel>();
  readonly #nodes = new Map<NodeId, ReturnType<typeof createNodeHistory>>();
  readonly #labels: NodeLabels[] = [NO_LABELS];
  readonly #labelIndexes = new Map<string, number>();
  #scrapedAt: Float64Array | null = null;
  readonly #collectors = new Map<string, Float64Array>();

  constructor(grid: TimeGrid) {
    this.grid = grid;
  }

  addStatus({ labels, values }: RangeSeries): void {
    this.families.add(NODE_STATUS.name);
    const { status } = this.#nodeOf(labels.node_id);
    const index = NODE_STATUSES.indexOf(labels.status as NodeStatus);
    for (const [point, value] of values.entries()) if (!Number.isNaN(value) && index >= 0) status[point] = index;
  }

  addInfo({ labels, values }: RangeSeries): void {
    this.families.add(NODE_INFO.name);
    const node = this.#nodeOf(labels.node_id);
    const index = this.#labelIndex(labels);
    for (const [point, value] of values.entries()) if (!Number.isNaN(value)) node.labels[point] = index;
  }

  addColumn(row: ColumnRow, { labels, values }: RangeSeries): void {
    this.families.add(row.name);
    const converted = values.map((value) => columnValueOf(row, value));
    this.#nodeOf(labels.node_id).columns.set(row.column, converted);
  }

  addSessions({ labels, values }: RangeSeries): void {
    this.families.add(NODE_SESSIONS);
    this.#nodeOf(labels.node_id).sessions.set(labels.status as SessionStatus, values);
  }

  addCollector({ labels, values }: RangeSeries): void {
    this.#collectors.set(`${labels.__name__} ${labels.collector}`, values);
  }

  addScrapeTimes({ values }: RangeSeries): void {
    this.#scrapedAt = values;
  }

  /** Returns when the daemon was scraped, or NaN if unknown, because the history lacks the daemon's own metrics. */
  scrapedAt(point: number): EpochMs {
    return (this.#scrapedAt?.[point] ?? Number.NaN) * SECOND_MS;
  }

  /** Returns what the daemon's own metrics say about a collector, or NaN if they say nothing. */
  collector(family: CollectorFamily, collector: Collector, point: number): number {
    return this.#collectors.get(`${family} ${collector}`)?.[point] ?? Number.NaN;
  }

  /** Returns the nodes that the history shows at a point. */
  *nodesAt(point: number): Iterable<HistoricalNode> {
    for (const [id, node] of this.#nodes) {
      const status = node.status[point]!;
      if (status === NO_STATUS) continue;
      yield {
        id,
        status: NODE_STATUSES[status]!,
        labels: this.#labels[node.labels[point]!]!,
        number: (column) => node.columns.get(column)?.[point] ?? Number.NaN,
        // Either the series or the sample may be missing.
        sessions: (wanted) => node.sessions.get(wanted)?.[point] || 0,
      };
    }
  }

  /** Returns the last name of each node that has one. */
  *names(): Iterable<readonly [NodeId, string]> {
    for (const [id, { labels }] of this.#nodes) {
      const name = this.#labels[labels.findLast((index) => index > 0) ?? 0]!.name;
      if (name !== null) yield [id, name];
    }
  }

  #nodeOf(id = "") {
    const node = this.#nodes.get(id) ?? createNodeHistory(this.grid.points);
    this.#nodes.set(id, node);
    return node;
  }

  #labelIndex(labels: RangeSeries["labels"]): number {
    const own = byName(NODE_LABELS, (label) => labels[label] || null);
    for (const label of NODE_LABELS) if (own[label] !== null) this.labels.add(label);
    const key = JSON.stringify(own);
    const index = this.#labelIndexes.get(key) ?? this.#labels.push(own) - 1;
    this.#labelIndexes.set(key, index);
    return index;
  }
}

/** A node at one point. */
export interface HistoricalNode {
  readonly id: NodeId;
  readonly status: (typeof NODE_STATUSES)[number];
  readonly labels: NodeLabels;
  /** The value of a column of the fleet, or NaN if there is no sample. */
  number(column: ColumnRow["column"]): number;
  /** Returns the number of sessions with a status, or 0 if there is no sample. */
  sessions(status: SessionStatus): number;
}
