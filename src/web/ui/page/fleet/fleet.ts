import type { FleetDocument } from "../api.ts";

/** A node as the grid shows it. */
export interface Cell {
  readonly slot: number;
  readonly id: string;
  /** Its name, or its id where it has none. */
  readonly name: string;
  readonly country: string;
  readonly region: string;
}

/** The nodes of a region, in order. */
export interface Group {
  readonly region: string;
  readonly cells: readonly Cell[];
}

/** What changed at a revision: slot, status and mark of each; null: the whole is to be read anew. */
export interface FleetChange {
  readonly from: number;
  readonly revision: number;
  readonly cells: readonly (readonly [slot: number, status: number, mark: number])[] | null;
}

/** The fleet as the page knows it. Statuses and marks change in place; who comes or goes makes another one. */
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

/** Where a record did not say. */
const NO_REGION = "no region";
const ZERO = "0".charCodeAt(0);
/** Comparing numbers within names costs; beyond so many nodes it is done without. */
const COLLATED_NODES_MAX = 20_000;

/** Reads a fleet, and puts it in order: by region, then country, then name. */
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
 * Takes in what changed, and says which slots. Null: it does not follow on what is known, so that the whole is to be
 * read anew. What is known already changes nothing.
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

/** Nodes in each status, in the order of the statuses. */
export function countStatuses({ cells, status, statuses }: FleetModel): readonly number[] {
  const counts = new Array<number>(statuses.length).fill(0);
  for (const { slot } of cells) counts[status[slot]!]!++;
  return counts;
}

/** The status of a node, as a word. */
export const statusOf = ({ statuses, status }: FleetModel, { slot }: Cell): string =>
  statuses[status[slot]!] ?? "unknown";

/** What the warden has to do with a node, as a word. */
export const markOf = ({ marks, mark }: FleetModel, { slot }: Cell): string => marks[mark[slot]!] ?? "none";

/** Statuses in which nothing is wrong that a person has not ordered. */
const HEALTHY_STATUSES: ReadonlySet<string> = new Set(["online", "maintenance"]);
/** Marks that make a node worth a look even where its status is fine. */
const ATTENTION_MARKS: ReadonlySet<string> = new Set(["firing", "episode", "acting", "held", "awaiting"]);

/** Whether a node needs an operator's attention. */
export const needsAttention = (fleet: FleetModel, cell: Cell): boolean =>
  !HEALTHY_STATUSES.has(statusOf(fleet, cell)) || ATTENTION_MARKS.has(markOf(fleet, cell));

/** The nodes that a person should know of: what waits for a person first, then by how much is done about them. */
export function nodesNeedingAttention(fleet: FleetModel): readonly Cell[] {
  const weight = (cell: Cell) => 10 * fleet.mark[cell.slot]! + (statusOf(fleet, cell) === "offline" ? 1 : 0);
  return fleet.cells.filter((cell) => needsAttention(fleet, cell)).sort((one, other) => weight(other) - weight(one));
}

/** The nodes whose name or id holds a text, in any case. */
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

const digits = (text: string): Uint8Array => Uint8Array.from(text, (digit) => digit.charCodeAt(0) - ZERO);
