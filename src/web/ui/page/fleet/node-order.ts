import { type FleetModel, nameOrder, pairOf } from "./fleet.ts";

/** A column that lists of nodes can be sorted by. `urgency` shows nodes that need an operator first. */
export const SORT_COLUMNS = ["urgency", "name", "status", "remediation", "region", "country", "id"] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];

/** An order of nodes. */
export interface NodeOrder {
  readonly column: SortColumn;
  readonly isDescending: boolean;
}

/** Marks from the most urgent (waiting for an operator) to the least urgent (an operator or another client acted). */
const MARKS_BY_URGENCY: readonly (readonly string[])[] = [
  ...[["awaiting"], ["given_up"], ["firing"], ["none", "pending", "dry_run"]],
  ...[["canary"], ["in_flight"], ["acting", "episode"], ["held"]],
];

const BYTE_MAX = 255;

/** Returns the indexes of nodes in an order. Nodes of equal rank keep their order. */
export function sortNodes(fleet: FleetModel, nodes: Uint32Array, { column, isDescending }: NodeOrder): Uint32Array {
  const ranks = rankNodes(fleet, nodes, column);
  const last = ranks instanceof Uint8Array ? BYTE_MAX : ranks.length - 1;
  // A counting sort: for 100,000 nodes it takes 1 ms, a sort of numbers 18 ms, and the table is sorted twice a second.
  const places = new Uint32Array(last + 1);
  for (let at = 0; at < nodes.length; at++) places[ranks[nodes[at]!]!]!++;
  let place = 0;
  for (let step = 0; step <= last; step++) {
    const rank = isDescending ? last - step : step;
    const count = places[rank]!;
    places[rank] = place;
    place += count;
  }
  const sorted = new Uint32Array(nodes.length);
  for (let at = 0; at < nodes.length; at++) sorted[places[ranks[nodes[at]!]!]!++] = nodes[at]!;
  return sorted;
}

/** Returns the ranks of nodes in a column, by their index. Ranks are smaller than the number of nodes, or are bytes. */
function rankNodes(fleet: FleetModel, nodes: Uint32Array, column: SortColumn): Uint8Array | Uint32Array {
  switch (column) {
    case "urgency":
      return rankByUrgency(fleet, nodes);
    case "status":
      return fleet.status;
    case "remediation":
      return fleet.mark;
    case "region":
      return fleet.groupIndex;
    case "name":
    case "id":
    case "country":
      return textRanks(fleet, column);
    default:
      return column satisfies never;
  }
}

function rankByUrgency(fleet: FleetModel, nodes: Uint32Array): Uint8Array {
  const { statuses, marks } = fleet;
  const urgencies = marks.map((name) => {
    const urgency = MARKS_BY_URGENCY.findIndex((each) => each.includes(name));
    return urgency === -1 ? MARKS_BY_URGENCY.length : urgency;
  });
  const rankByPair = statuses.flatMap((status) =>
    urgencies.map((urgency) => 2 * urgency + (status === "offline" ? 0 : 1)),
  );
  const ranks = new Uint8Array(fleet.cells.length);
  for (const index of nodes) ranks[index] = rankByPair[pairOf(fleet, index)]!;
  return ranks;
}

type TextColumn = "name" | "id" | "country";
const knownRanks = new WeakMap<FleetModel, Partial<Record<TextColumn, Uint32Array>>>();

/** Returns the rank of each node in a text column, by its index. Ranks are computed when they are first needed. */
function textRanks(fleet: FleetModel, column: TextColumn): Uint32Array {
  const known = knownRanks.get(fleet) ?? {};
  knownRanks.set(fleet, known);
  known[column] ??= rankTexts(fleet, column);
  return known[column];
}

function rankTexts({ cells }: FleetModel, column: TextColumn): Uint32Array {
  const compare = nameOrder(cells.length);
  const ranks = new Uint32Array(cells.length);
  let rank = 0;
  let last: string | null = null;
  for (const cell of cells.toSorted((one, other) => compare(one[column], other[column]))) {
    if (last !== null && cell[column] !== last) rank++;
    last = cell[column];
    ranks[cell.index] = rank;
  }
  return ranks;
}
