import type { FleetDocument, FleetGridChange } from "../../../api/fleet-columns.ts";

/** A node as the grid and the lists show it. */
export interface Cell {
  /** Index in the order of region, country and name, and in the columns of the fleet. */
  readonly index: number;
  readonly id: string;
  /** Its name, or its id if it has none. */
  readonly name: string;
  readonly country: string;
  readonly region: string;
}

/** A region. Its nodes follow each other in the order of the fleet. */
interface Group {
  readonly region: string;
  /** Number of nodes. */
  count: number;
  /** Number of online nodes. */
  online: number;
}

/**
 * The fleet. Statuses, marks and counts change in place. If nodes are added, removed, renamed or moved, it is read again.
 */
export interface FleetModel {
  revision: number;
  readonly statuses: readonly string[];
  readonly marks: readonly string[];
  readonly groups: readonly Group[];
  readonly cells: readonly Cell[];
  /** The indexes of all nodes. */
  readonly indexes: Uint32Array;
  readonly status: Uint8Array;
  readonly mark: Uint8Array;
  /** Index of the node's group. */
  readonly groupIndex: Uint32Array;
  /** Nodes by status and mark: see {@link pairOf}. */
  readonly pairCounts: Uint32Array;
  /** The index of the node in each slot. */
  readonly indexBySlot: Uint32Array;
}

/** Region of nodes without one. */
const NO_REGION = "no region";
/** Numbers in names are compared numerically only up to this many nodes, because it is slow. */
const COLLATED_NODES_MAX = 20_000;

type Compare = (one: string, other: string) => number;
const compareCodes: Compare = (one, other) => (one < other ? -1 : Number(one > other));
const collator = new Intl.Collator("en", { numeric: true });
/** The collator considers some different texts equal, such as `eu-1` and `eu-01`. */
const compareNatural: Compare = (one, other) => collator.compare(one, other) || compareCodes(one, other);

/** Returns the comparison of names for a fleet of this size. */
export const nameOrder = (nodes: number): Compare => (nodes > COLLATED_NODES_MAX ? compareCodes : compareNatural);

/** The value of each base-36 digit, by its character code. */
const DIGIT_VALUES = Uint8Array.from({ length: 128 }, (_, code) => Number.parseInt(String.fromCharCode(code), 36));

/** Reads a fleet and sorts it by region, country and name. */
export function readFleet(document: FleetDocument): FleetModel {
  const locations = slotsByLocation(document);
  const nodes = locations.reduce((sum, { slots }) => sum + slots.length, 0);
  const groups: Group[] = [];
  const cells = new Array<Cell>(nodes);
  const fleet: FleetModel = {
    revision: document.revision,
    statuses: document.statuses,
    marks: document.marks,
    groups,
    cells,
    indexes: new Uint32Array(nodes),
    status: new Uint8Array(nodes),
    mark: new Uint8Array(nodes),
    groupIndex: new Uint32Array(nodes),
    pairCounts: new Uint32Array(document.statuses.length * document.marks.length),
    indexBySlot: new Uint32Array(document.ids.length),
  };
  const [statusDigits, markDigits] = [document.status, document.mark].map((text) => new TextEncoder().encode(text));
  let index = 0;
  for (const { country, region, slots } of locations) {
    if (groups.at(-1)?.region !== region) groups.push({ region, count: 0, online: 0 });
    groups.at(-1)!.count += slots.length;
    for (const slot of slots) {
      const id = document.ids[slot]!;
      cells[index] = { index, id, name: document.names[slot] || id, country, region };
      fleet.indexes[index] = index;
      fleet.status[index] = DIGIT_VALUES[statusDigits![slot]!]!;
      fleet.mark[index] = DIGIT_VALUES[markDigits![slot]!]!;
      fleet.groupIndex[index] = groups.length - 1;
      fleet.indexBySlot[slot] = index;
      index++;
    }
  }
  for (index = 0; index < nodes; index++) count(fleet, index, 1);
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
 * Applies changes and returns the indexes of the changed nodes. Returns null if they do not continue the known revision,
 * so the fleet must be reloaded. Known changes are ignored.
 */
export function applyChange(fleet: FleetModel, change: FleetGridChange): readonly number[] | null {
  if (change.revision <= fleet.revision) return [];
  if (change.from !== fleet.revision || change.cells === null) return null;
  fleet.revision = change.revision;
  return change.cells.map(([slot, status, mark]) => {
    const index = fleet.indexBySlot[slot]!;
    count(fleet, index, -1);
    fleet.status[index] = status;
    fleet.mark[index] = mark;
    count(fleet, index, 1);
    return index;
  });
}

/** Adds a node to the counts or removes it. */
function count(fleet: FleetModel, index: number, by: 1 | -1): void {
  fleet.pairCounts[pairOf(fleet, index)]! += by;
  if (fleet.statuses[fleet.status[index]!] === "online") fleet.groups[fleet.groupIndex[index]!]!.online += by;
}

/** Returns the index of a node's pair of status and mark. */
export const pairOf = ({ status, mark, marks }: FleetModel, index: number): number =>
  status[index]! * marks.length + mark[index]!;

/** Returns what `accepts` returns for each pair of status and mark. */
export const choosePairs = (
  { statuses, marks }: FleetModel,
  accepts: (status: string, mark: string) => boolean,
): readonly boolean[] => statuses.flatMap((status) => marks.map((mark) => accepts(status, mark)));

/** Returns the indexes in `nodes` of those nodes for whose status and mark `accepts` returns true. */
export function selectNodes(
  fleet: FleetModel,
  nodes: Uint32Array,
  accepts: (status: string, mark: string) => boolean,
): Uint32Array {
  const pairs = choosePairs(fleet, accepts);
  const { status, mark, marks } = fleet;
  const selected: number[] = [];
  // The loop runs twice a second over all nodes, so it reads the columns directly.
  for (let at = 0; at < nodes.length; at++) {
    const index = nodes[at]!;
    if (pairs[status[index]! * marks.length + mark[index]!]!) selected.push(index);
  }
  return Uint32Array.from(selected);
}

/** Counts the nodes for whose status and mark `accepts` returns true. */
export const countNodes = (fleet: FleetModel, accepts: (status: string, mark: string) => boolean): number =>
  choosePairs(fleet, accepts).reduce((sum, isChosen, pair) => sum + (isChosen ? fleet.pairCounts[pair]! : 0), 0);

/** Returns the status of a node as a word. */
export const statusOf = ({ statuses, status }: FleetModel, { index }: Cell): string =>
  statuses[status[index]!] ?? "unknown";

/** Returns the mark of a node as a word. */
export const markOf = ({ marks, mark }: FleetModel, { index }: Cell): string => marks[mark[index]!] ?? "none";

const knownIds = new WeakMap<FleetModel, ReadonlyMap<string, Cell>>();

/** Returns the node with an id, if it is in the fleet. The first call for a fleet reads all ids. */
export function findNode(fleet: FleetModel, id: string): Cell | undefined {
  const byId = knownIds.get(fleet) ?? new Map(fleet.cells.map((cell) => [cell.id, cell]));
  knownIds.set(fleet, byId);
  return byId.get(id);
}

/** Returns the name of a node, or its id if it is not in the fleet. */
export const nodeName = (fleet: FleetModel | null, id: string): string =>
  fleet === null ? id : (findNode(fleet, id)?.name ?? id);
