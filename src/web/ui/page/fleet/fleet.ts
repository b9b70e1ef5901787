import type { FleetDocument } from "../api.ts";

/** A node as the grid shows it. */
export interface Cell {
  readonly slot: number;
  readonly id: string;
  /** Its name, or its id if it has none. */
  readonly name: string;
  readonly country: string;
  readonly region: string;
}

/** The nodes of a region, in order. */
interface Group {
  readonly region: string;
  readonly cells: readonly Cell[];
}

/** Changes of a revision: slot, status and mark of each; null: reload the fleet. */
export interface FleetChange {
  readonly from: number;
  readonly revision: number;
  readonly cells: readonly (readonly [slot: number, status: number, mark: number])[] | null;
}

/** The fleet. Statuses and marks change in place; added or removed nodes need a new one. */
export interface FleetModel {
  revision: number;
  readonly statuses: readonly string[];
  readonly marks: readonly string[];
  readonly groups: readonly Group[];
  readonly cells: readonly Cell[];
  /** By slot. */
  readonly status: Uint8Array;
  readonly mark: Uint8Array;
  readonly byId: ReadonlyMap<string, Cell>;
}

/** Region or country of nodes without one. */
const NO_REGION = "no region";
/** Numbers in names are compared numerically only below this many nodes, because it is slow. */
const COLLATED_NODES_MAX = 20_000;

/** Reads a fleet and sorts it by region, country and name. */
export function readFleet(document: FleetDocument): FleetModel {
  const cells = document.ids.flatMap((id, slot): Cell[] => {
    if (id === "") return [];
    const { country = "", region = "" } = document.places[document.place[slot]!] ?? {};
    return [{ slot, id, name: document.names[slot] || id, country, region: region || NO_REGION }];
  });
  const compare =
    cells.length > COLLATED_NODES_MAX
      ? (one: string, other: string) => (one < other ? -1 : Number(one > other))
      : new Intl.Collator("en", { numeric: true }).compare;
  cells.sort(
    (one, other) =>
      compare(one.region, other.region) || compare(one.country, other.country) || compare(one.name, other.name),
  );
  return {
    revision: document.revision,
    statuses: document.statuses,
    marks: document.marks,
    groups: groupByRegion(cells),
    cells,
    status: digits(document.status),
    mark: digits(document.mark),
    byId: new Map(cells.map((cell) => [cell.id, cell])),
  };
}

/**
 * Applies changes and returns their slots. Null: they do not continue the known revision, so the fleet must be
 * reloaded. Known changes are ignored.
 */
export function applyChange(fleet: FleetModel, change: FleetChange): readonly number[] | null {
  if (change.revision <= fleet.revision) return [];
  if (change.from !== fleet.revision || change.cells === null) return null;
  fleet.revision = change.revision;
  for (const [slot, status, mark] of change.cells) {
    fleet.status[slot] = status;
    fleet.mark[slot] = mark;
  }
  return change.cells.map(([slot]) => slot);
}

/** Counts the nodes in each status, in the order of the statuses. */
export function countStatuses({ cells, status, statuses }: FleetModel): readonly number[] {
  const counts = new Array<number>(statuses.length).fill(0);
  for (const { slot } of cells) counts[status[slot]!]!++;
  return counts;
}

/** Returns the status of a node as a word. */
export const statusOf = ({ statuses, status }: FleetModel, { slot }: Cell): string =>
  statuses[status[slot]!] ?? "unknown";

/** Returns the mark of a node as a word. */
export const markOf = ({ marks, mark }: FleetModel, { slot }: Cell): string => marks[mark[slot]!] ?? "none";

/** Statuses that need no attention. */
const HEALTHY_STATUSES: ReadonlySet<string> = new Set(["online", "maintenance"]);
/** Marks that need attention whatever the status. */
const ATTENTION_MARKS: ReadonlySet<string> = new Set(["firing", "episode", "acting", "held", "awaiting"]);

/** Returns whether a node needs an operator's attention. */
export const needsAttention = (fleet: FleetModel, cell: Cell): boolean =>
  !HEALTHY_STATUSES.has(statusOf(fleet, cell)) || ATTENTION_MARKS.has(markOf(fleet, cell));

/** Returns the nodes that need attention, those that wait for approval first. */
export function nodesNeedingAttention(fleet: FleetModel): readonly Cell[] {
  const weight = (cell: Cell) => 10 * fleet.mark[cell.slot]! + (statusOf(fleet, cell) === "offline" ? 1 : 0);
  return fleet.cells.filter((cell) => needsAttention(fleet, cell)).sort((one, other) => weight(other) - weight(one));
}

/** Returns the nodes whose name or id contains a text, in any case. */
export function searchNodes({ cells }: FleetModel, text: string): readonly Cell[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  return cells.filter(({ id, name }) => name.toLowerCase().includes(wanted) || id.toLowerCase().includes(wanted));
}

function groupByRegion(cells: readonly Cell[]): readonly Group[] {
  const groups = new Map<string, Cell[]>();
  for (const cell of cells) {
    const group = groups.get(cell.region);
    if (group === undefined) groups.set(cell.region, [cell]);
    else group.push(cell);
  }
  return [...groups].map(([region, members]) => ({ region, cells: members }));
}

const digits = (text: string): Uint8Array => Uint8Array.from(text, (digit) => Number.parseInt(digit, 36));
