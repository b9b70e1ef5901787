import type { FleetDocument } from "../api.ts";

/** A node as the grid and the lists show it. */
export interface Cell {
  readonly slot: number;
  /** Index in the order of region, country and name. */
  readonly index: number;
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
  /** Number of online nodes among them. */
  online: number;
}

/** Changes of a revision. `cells` is null if the fleet must be reloaded. */
export interface FleetChange {
  readonly from: number;
  readonly revision: number;
  readonly cells: readonly (readonly [slot: number, status: number, mark: number])[] | null;
}

/** The fleet. Statuses, marks and counts change in place; added or removed nodes need a new one. */
export interface FleetModel {
  revision: number;
  readonly statuses: readonly string[];
  readonly marks: readonly string[];
  readonly groups: readonly Group[];
  readonly cells: readonly Cell[];
  /** By slot. */
  readonly status: Uint8Array;
  readonly mark: Uint8Array;
  /** Index of the node's group, by slot. */
  readonly groupIndex: Uint32Array;
  /** Nodes by status and mark: see {@link pairOf}. */
  readonly pairCounts: Uint32Array;
  readonly byId: ReadonlyMap<string, Cell>;
  /** The node of each slot. */
  readonly bySlot: readonly (Cell | undefined)[];
}

/** Region of nodes without one. */
const NO_REGION = "no region";
/** Numbers in names are compared numerically only below this many nodes, because it is slow. */
const COLLATED_NODES_MAX = 20_000;

type Compare = (one: string, other: string) => number;
const compareCodes: Compare = (one, other) => (one < other ? -1 : Number(one > other));
const collator = new Intl.Collator("en", { numeric: true });
/** The collator considers some different texts equal, such as `eu-1` and `eu-01`. */
const compareNatural: Compare = (one, other) => collator.compare(one, other) || compareCodes(one, other);

/** Returns the comparison of names for a fleet of this size. */
export const nameOrder = (nodes: number): Compare => (nodes > COLLATED_NODES_MAX ? compareCodes : compareNatural);

/** Reads a fleet and sorts it by region, country and name. */
export function readFleet(document: FleetDocument): FleetModel {
  const bySlot: (Cell | undefined)[] = new Array(document.ids.length);
  const groups: Group[] = [];
  const cells: Cell[] = [];
  for (const { country, region, slots } of slotsByLocation(document)) {
    let group = groups.at(-1);
    if (group?.region !== region) {
      group = { region, cells: [], online: 0 };
      groups.push(group);
    }
    for (const slot of slots) {
      const id = document.ids[slot]!;
      const cell = { slot, index: cells.length, id, name: document.names[slot] || id, country, region };
      cells.push(cell);
      (group.cells as Cell[]).push(cell);
      bySlot[slot] = cell;
    }
  }
  const fleet: FleetModel = {
    revision: document.revision,
    statuses: document.statuses,
    marks: document.marks,
    groups,
    cells,
    status: digits(document.status),
    mark: digits(document.mark),
    groupIndex: new Uint32Array(bySlot.length),
    pairCounts: new Uint32Array(document.statuses.length * document.marks.length),
    byId: new Map(cells.map((cell) => [cell.id, cell])),
    bySlot,
  };
  for (const [index, group] of groups.entries()) for (const { slot } of group.cells) fleet.groupIndex[slot] = index;
  for (const { slot } of cells) count(fleet, slot, 1);
  return fleet;
}

/** Returns the locations that have nodes, by region and country, with the slots of their nodes by name. */
function slotsByLocation({ ids, names, location, locations }: FleetDocument) {
  const compare = nameOrder(ids.length);
  const byLocation = locations.map(({ country, region }) => ({
    country,
    region: region || NO_REGION,
    slots: [] as number[],
  }));
  for (let slot = 0; slot < ids.length; slot++) if (ids[slot] !== "") byLocation[location[slot]!]!.slots.push(slot);
  for (const { slots } of byLocation) {
    slots.sort((one, other) => compare(names[one] || ids[one]!, names[other] || ids[other]!));
  }
  return byLocation
    .filter(({ slots }) => slots.length > 0)
    .sort((one, other) => compareNatural(one.region, other.region) || compareNatural(one.country, other.country));
}

/**
 * Applies changes and returns their slots. Returns null if they do not continue the known revision, so the fleet must
 * be reloaded. Known changes are ignored.
 */
export function applyChange(fleet: FleetModel, change: FleetChange): readonly number[] | null {
  if (change.revision <= fleet.revision) return [];
  if (change.from !== fleet.revision || change.cells === null) return null;
  fleet.revision = change.revision;
  for (const [slot, status, mark] of change.cells) {
    count(fleet, slot, -1);
    fleet.status[slot] = status;
    fleet.mark[slot] = mark;
    count(fleet, slot, 1);
  }
  return change.cells.map(([slot]) => slot);
}

/** Adds a node to the counts or removes it. */
function count(fleet: FleetModel, slot: number, by: 1 | -1): void {
  fleet.pairCounts[pairOf(fleet, slot)]! += by;
  if (fleet.statuses[fleet.status[slot]!] === "online") fleet.groups[fleet.groupIndex[slot]!]!.online += by;
}

/** Returns the index of a node's pair of status and mark. */
export const pairOf = ({ status, mark, marks }: FleetModel, slot: number): number =>
  status[slot]! * marks.length + mark[slot]!;

/** Returns for each pair of status and mark whether `accepts` is true. */
export const choosePairs = (
  { statuses, marks }: FleetModel,
  accepts: (status: string, mark: string) => boolean,
): readonly boolean[] => statuses.flatMap((status) => marks.map((mark) => accepts(status, mark)));

/** Counts the nodes whose status and mark `accepts`. */
export const countNodes = (fleet: FleetModel, accepts: (status: string, mark: string) => boolean): number =>
  choosePairs(fleet, accepts).reduce((sum, isChosen, pair) => sum + (isChosen ? fleet.pairCounts[pair]! : 0), 0);

/** Returns the status of a node as a word. */
export const statusOf = ({ statuses, status }: FleetModel, { slot }: Cell): string =>
  statuses[status[slot]!] ?? "unknown";

/** Returns the mark of a node as a word. */
export const markOf = ({ marks, mark }: FleetModel, { slot }: Cell): string => marks[mark[slot]!] ?? "none";

const digits = (text: string): Uint8Array => Uint8Array.from(text, (digit) => Number.parseInt(digit, 36));
