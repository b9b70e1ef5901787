import { HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import { LABEL_CAPS, OTHER_LABEL } from "../../model/label-values.ts";
import { type DetailNumber, LISTED_NUMBERS, type ListedNumber, NODE_STATUSES } from "../../model/node.ts";
import type { Location } from "../../model/snapshot.ts";
import { type AggregateFamily, isFresh, type NodeFamily, type RenderInput, type Sample } from "./family.ts";

/** Bytes per gigabyte. The spec does not define the unit; this is the SI definition. */
export const GB_BYTES = 1e9;

/** Enough for a percentage with two decimals. */
const USAGE_DECIMALS = 4;
/** Enough for milliseconds. */
const TIMESTAMP_DECIMALS = 3;

/** A gauge that shows one column of the fleet. */
export interface ColumnRow extends Pick<NodeFamily, "name" | "help" | "decimals"> {
  readonly column: ListedNumber | DetailNumber | "detailedAtEpochMs";
  /**
   * The sample is the column's value times `multiplyBy`, divided by `divideBy`. There are two numbers because no
   * floating-point number is exactly 1/1000.
   */
  readonly multiplyBy?: number;
  readonly divideBy?: number;
  /** Whether the sample is rounded to a whole number. Defaults to false. */
  readonly isRounded?: boolean;
}

/** Creates a gauge from one column of the fleet. */
function columnFamily(options: ColumnRow): NodeFamily {
  const { column, multiplyBy = 1, divideBy = 1, isRounded = false, ...row } = options;
  return {
    ...row,
    type: "gauge",
    labels: ["node_id"],
    source: column in LISTED_NUMBERS ? "nodes" : "details",
    columns: ({ snapshot }) => [snapshot.fleet[column]],
    fill({ snapshot }, start, end, out) {
      snapshot.fleet[column].copyTo(out, start, end);
      if (multiplyBy !== 1) for (let line = 0; line < end - start; line++) out[line]! *= multiplyBy;
      if (divideBy !== 1) for (let line = 0; line < end - start; line++) out[line]! /= divideBy;
      if (isRounded) for (let line = 0; line < end - start; line++) out[line] = Math.round(out[line]!);
    },
  };
}

/** One line per node; its labels are set by `export.node_labels`. */
export const NODE_INFO: NodeFamily = {
  name: "proxynet_node_info",
  type: "gauge",
  help: "Node information; always 1.",
  labels: ["node_id"],
  source: "nodes",
  columns: () => [],
  fill: (_input, start, end, out) => out.fill(1, 0, end - start),
};

/** One line per node and status. */
export const NODE_STATUS: NodeFamily = {
  name: "proxynet_node_status",
  type: "gauge",
  help: "1 for the node's current status, 0 for the others.",
  labels: ["node_id", "status"],
  source: "nodes",
  splitBy: { label: "status", values: NODE_STATUSES },
  columns: ({ snapshot }) => [snapshot.fleet.status],
  fill({ snapshot }, start, end, out) {
    const { status } = snapshot.fleet;
    const states = NODE_STATUSES.length;
    out.fill(0, 0, (end - start) * states);
    for (let slot = start; slot < end; slot++) out[(slot - start) * states + status[slot]!] = 1;
  },
};

/** The gauges that show one column each, in the order of the page. */
export const NODE_COLUMN_ROWS: readonly ColumnRow[] = [
  {
    name: "proxynet_node_last_seen_timestamp_seconds",
    help: "Time at which the service last saw the node, on the service's clock.",
    column: "lastSeenMs",
    divideBy: SECOND_MS,
    decimals: TIMESTAMP_DECIMALS,
  },
  {
    name: "proxynet_node_uptime_seconds",
    help: "Uptime of the node, reported by the service in whole hours.",
    column: "uptimeHours",
    multiplyBy: HOUR_MS / SECOND_MS,
  },
  {
    name: "proxynet_node_active_sessions",
    help: "Active sessions on the node, as reported in its record.",
    column: "activeSessions",
  },
  {
    name: "proxynet_node_bandwidth_bytes",
    help: "Bandwidth of the node, reported by the service in gigabytes; the service does not define the period.",
    column: "bandwidthGb",
    multiplyBy: GB_BYTES,
    isRounded: true,
  },
  {
    name: "proxynet_node_cpu_usage_ratio",
    help: "CPU usage of the node, 0 to 1.",
    column: "cpuUsage",
    decimals: USAGE_DECIMALS,
  },
  {
    name: "proxynet_node_memory_usage_ratio",
    help: "Memory usage of the node, 0 to 1.",
    column: "memoryUsage",
    decimals: USAGE_DECIMALS,
  },
  {
    name: "proxynet_node_disk_usage_ratio",
    help: "Disk usage of the node, 0 to 1.",
    column: "diskUsage",
    decimals: USAGE_DECIMALS,
  },
  {
    name: "proxynet_node_detail_timestamp_seconds",
    help: "Time at which the node's details, including its usage, were read.",
    column: "detailedAtEpochMs",
    divideBy: SECOND_MS,
    decimals: TIMESTAMP_DECIMALS,
  },
  {
    name: "proxynet_node_created_timestamp_seconds",
    help: "Creation time of the node.",
    column: "createdAtMs",
    divideBy: SECOND_MS,
  },
  {
    name: "proxynet_node_updated_timestamp_seconds",
    help: "Time of the last update of the node's record.",
    column: "updatedAtMs",
    divideBy: SECOND_MS,
  },
];

/** Families with at least one line per node. */
export const NODE_FAMILIES: readonly NodeFamily[] = [NODE_INFO, NODE_STATUS, ...NODE_COLUMN_ROWS.map(columnFamily)];

/** Converts a sample of a family back to the value of its column. Milliseconds are rounded. */
export function columnValueOf({ multiplyBy = 1, divideBy = 1 }: ColumnRow, sample: number): number {
  const value = (sample * divideBy) / multiplyBy;
  return divideBy === 1 ? value : Math.round(value);
}

/** Nodes by status and location, including zeros, so that graphs show when a status no longer occurs. */
export const NODE_COUNTS: AggregateFamily = {
  name: "proxynet_nodes",
  type: "gauge",
  help: "Nodes by status, country and region, counting fresh records only; absent unless there was a recent walk.",
  labels: ["status", "country", "region"],
  source: "nodes",
  *samples(input) {
    const { fleet } = input.snapshot;
    if (fleet.walkedAt === null || !isFresh(input, "nodes", fleet.walkedAt)) return;
    const exported = exportedLocations(fleet.locations);
    const counts = countNodes(input, exported);
    for (const [row, { country, region }] of exported.rows.entries()) {
      for (const [state, status] of NODE_STATUSES.entries()) {
        const value = counts[row * NODE_STATUSES.length + state]!;
        yield { labels: { status, country, region }, value } satisfies Sample;
      }
    }
  },
};

/**
 * Returns the locations that have series, which are the first ones up to the cap of `proxynet_nodes`, and `other` for the
 * rest. `rowOf` has the row of each location in them.
 */
function exportedLocations(locations: readonly Location[]) {
  const { values: locationsMax } = LABEL_CAPS.proxynet_nodes;
  const hasRow = ({ country, region }: Location, index: number) =>
    index < locationsMax && (country !== OTHER_LABEL || region !== OTHER_LABEL);
  const rows = locations.filter(hasRow);
  const otherRow = rows.length;
  if (otherRow < locations.length) rows.push({ country: OTHER_LABEL, region: OTHER_LABEL });
  let next = 0;
  const rowOf = Uint32Array.from(locations, (location, index) => (hasRow(location, index) ? next++ : otherRow));
  return { rows, rowOf };
}

function countNodes(input: RenderInput, { rows, rowOf }: ReturnType<typeof exportedLocations>): Uint32Array {
  const { fleet } = input.snapshot;
  const states = NODE_STATUSES.length;
  const counts = new Uint32Array(rows.length * states);
  for (let slot = 0; slot < fleet.slots; slot++) {
    // A node that walks no longer show has an old record, and an empty slot has no time.
    if (isFresh(input, "nodes", fleet.listedAt.at(slot)))
      counts[rowOf[fleet.locationIndex[slot]!]! * states + fleet.status[slot]!]!++;
  }
  return counts;
}
