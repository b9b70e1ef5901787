import { NumberColumn, WritableNumberColumn } from "../src/base/number-column.ts";
import { seededRandom } from "../src/base/random.ts";
import type { RenderInput } from "../src/metrics/families/family.ts";
import { NODE_STATUSES } from "../src/model/node.ts";
import type { Fleet } from "../src/model/snapshot.ts";
import type { MonotonicMs } from "../src/model/time.ts";
import { fieldColumns } from "../test/inventory/inventory-fixtures.ts";

/** Families that neither side renders, so that each node has twelve series and one info series. */
const DENIED = [
  "proxynet_nodes",
  "proxynet_node_bandwidth_bytes",
  "proxynet_node_detail_timestamp_seconds",
  "proxynet_node_created_timestamp_seconds",
  "proxynet_node_updated_timestamp_seconds",
];

const LOCATIONS = ["DE", "FR", "US", "BR", "JP", "IN", "ZA", "AU"].map((country) => ({
  country,
  region: `${country}-1`,
}));
const HOUR_MS = 3_600_000;
const START_MS = 1_763_700_000_000;

/** Columns that change from round to round. */
const columns = ["lastSeenMs", "uptimeHours", "activeSessions", "cpuUsage", "memoryUsage", "diskUsage"] as const;

/** A synthetic fleet that changes identically in every process. */
export interface FleetSource {
  /**
   * Returns the next state, in which `share` of the nodes have a new value in every column and another status. These
   * nodes are consecutive in the list, as nodes read at about the same time are, or spread evenly over it if `scattered`.
   */
  next(share: number, scattered?: boolean): Fleet;
}

/** Creates a fleet of `nodes` nodes. */
export function createFleetSource(nodes: number): FleetSource {
  const random = seededRandom(nodes);
  const upTo = (count: number) => Math.floor(random() * count);
  const fleet = emptyFleet(nodes, upTo);
  let { status } = fleet;
  const values = byColumn(() => new WritableNumberColumn());
  for (const column of columns) for (let slot = 0; slot < nodes; slot++) values[column].grow();
  let round = 0;

  function change(slot: number): void {
    status[slot] = (status[slot]! + 1 + upTo(NODE_STATUSES.length - 2)) % (NODE_STATUSES.length - 1);
    values.lastSeenMs.set(slot, START_MS + round * 60_000 + upTo(60_000));
    values.uptimeHours.set(slot, upTo(2_000));
    values.activeSessions.set(slot, upTo(300));
    values.cpuUsage.set(slot, upTo(10_000) / 10_000);
    values.memoryUsage.set(slot, upTo(10_000) / 10_000);
    values.diskUsage.set(slot, upTo(10_000) / 10_000);
  }

  return {
    next(share, scattered = false) {
      round++;
      status = status.slice();
      const count = Math.round(nodes * share);
      const step = scattered ? Math.round(1 / share) : 1;
      for (let index = 0; index < count; index++) change((round * count + index * step) % nodes);
      return { ...fleet, status, ...byColumn((column) => values[column].copy()) };
    },
  };
}

/** Returns a record with a value for each column that changes. */
const byColumn = <Value>(create: (column: (typeof columns)[number]) => Value) =>
  Object.fromEntries(columns.map((column) => [column, create(column)])) as Record<(typeof columns)[number], Value>;

/** Copies a string to a flat one, as JSON.parse creates it, instead of a rope of concatenated parts. */
const flat = (text: string) => Buffer.from(text).toString("latin1");

function emptyFleet(nodes: number, upTo: (count: number) => number) {
  const slots = Array.from({ length: nodes }, (_, slot) => slot);
  const hex = (digits: number) =>
    upTo(16 ** digits)
      .toString(16)
      .padStart(digits, "0");
  const zeros = NumberColumn.from(slots.map(() => 0));
  return {
    slots: nodes,
    count: nodes,
    // About as long as a UUID, so that a line has the 100 bytes on which the targets are based.
    ids: slots.map((slot) =>
      flat(`node_${slot.toString(16).padStart(8, "0")}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`),
    ),
    ...fieldColumns(nodes),
    name: slots.map((slot) => flat(`edge-${LOCATIONS[slot % LOCATIONS.length]!.country.toLowerCase()}-${slot}`)),
    ipAddress: slots.map((slot) => flat(`10.${slot >> 16}.${(slot >> 8) & 255}.${slot & 255}`)),
    version: slots.map((slot) => (slot % 3 === 0 ? "2.4.1" : "2.5.0")),
    locationIndex: Uint32Array.from(slots, (slot) => slot % LOCATIONS.length),
    locations: LOCATIONS,
    status: new Uint8Array(nodes),
    listedAt: zeros,
    otherStatusAt: NumberColumn.from(slots.map(() => Number.NaN)),
    detailedAt: zeros,
    detailedAtEpochMs: NumberColumn.from(slots.map(() => Number.NaN)),
    detailLastSeenMs: NumberColumn.from(slots.map(() => Number.NaN)),
    usageKnown: true,
    settledFrom: null,
    settledAt: 0,
    walkedAt: 0,
    lastWalk: null,
  } satisfies Fleet;
}

const OPTIONS: RenderInput["options"] = {
  nodeLabels: ["name", "country", "region", "version"],
  topCustomers: 20,
  deny: new Set(DENIED),
  seriesMax: 100_000_000,
};

/** Returns the input of the renderer for a fleet. */
export const inputOf = (fleet: Fleet, now: MonotonicMs): RenderInput => ({
  snapshot: { sequence: 0, at: 0, fleet, sessions: null, stats: null, hourly: null },
  now,
  serviceNowMs: START_MS,
  staleAfterMs: { nodes: HOUR_MS, details: HOUR_MS, sessions: HOUR_MS, stats: HOUR_MS, hourly: HOUR_MS },
  options: OPTIONS,
});
