import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { NODE_MARKS, type NodeMark } from "../../remediation/status/views.ts";

/** A node's slot, its status and its mark, the last two as indexes of NODE_STATUSES and NODE_MARKS. */
export type CellChange = readonly [slot: number, status: number, mark: number];

/** What became different between two revisions of a board. */
export interface FleetGridChange {
  readonly from: number;
  readonly revision: number;
  /** Null: nodes came or went, or too much changed to be told one by one: the whole is to be read anew. */
  readonly cells: readonly CellChange[] | null;
}

/** The whole fleet in a few bytes a node, and what changed in it. */
export interface FleetGrid {
  /** Looks at the fleet as it is now; null: it is as it was. */
  refresh(): FleetGridChange | null;
  revision(): number;
  /** `GET /api/v1/fleet`, as of the last look: one JSON text, in columns by slot. A slot whose id is "" is empty. */
  document(): string;
}

/** What a board is made from. */
export interface FleetGridDeps {
  /** Null before the first was seen. */
  fleet(): Fleet | null;
  marks(): ReadonlyMap<NodeId, NodeMark>;
}

/** Told one by one, more changes would be longer than the whole is for most fleets. */
const CELL_CHANGES_MAX = 2_000;
/** The digit 0: a column of small numbers is written as one text, a digit each. */
const ZERO = 48;

/** What was looked at last. Nobody writes into any of it. */
interface GridState {
  readonly fleet: Fleet;
  readonly marks: Uint8Array;
}

/** Creates a fleet grid. It does no work until the first refresh. */
export function createFleetGrid(parts: FleetGridDeps): FleetGrid {
  let last: GridState | null = null;
  let revision = 0;
  let text: { readonly revision: number; readonly json: string } | null = null;
  const columnTexts = createColumnTextCache();

  return {
    refresh() {
      const fleet = parts.fleet();
      if (fleet === null) return null;
      const now: GridState = { fleet, marks: markColumn(fleet, parts.marks()) };
      const before = last;
      last = now;
      const cells = before === null || !isSameLayout(before.fleet, fleet) ? null : findCellChanges(before, now);
      if (cells?.length === 0) return null;
      revision++;
      return { from: revision - 1, revision, cells: cells !== null && cells.length > CELL_CHANGES_MAX ? null : cells };
    },
    revision: () => revision,
    document() {
      if (text?.revision !== revision) text = { revision, json: writeDocument(revision, last, columnTexts) };
      return text.json;
    },
  };
}

/** Columns are shared from one fleet to the next for as long as they don't change. */
const isSameLayout = (one: Fleet, other: Fleet): boolean =>
  one.ids === other.ids &&
  one.names === other.names &&
  one.locationIndex === other.locationIndex &&
  one.locations === other.locations;

function markColumn(fleet: Fleet, marks: ReadonlyMap<NodeId, NodeMark>): Uint8Array {
  const column = new Uint8Array(fleet.slots);
  if (marks.size === 0) return column;
  const slots = slotsById(fleet.ids);
  for (const [node, mark] of marks) {
    const slot = slots.get(node);
    if (slot !== undefined) column[slot] = NODE_MARKS.indexOf(mark);
  }
  return column;
}

const slotsByIds = new WeakMap<readonly string[], ReadonlyMap<NodeId, number>>();

function slotsById(ids: readonly string[]): ReadonlyMap<NodeId, number> {
  const known = slotsByIds.get(ids);
  if (known !== undefined) return known;
  const slots = new Map(ids.map((id, slot) => [id, slot]));
  slotsByIds.set(ids, slots);
  return slots;
}

function findCellChanges(before: GridState, now: GridState): readonly CellChange[] {
  const cells: CellChange[] = [];
  const [oldStatus, status] = [before.fleet.status, now.fleet.status];
  for (let slot = 0; slot < now.fleet.slots; slot++) {
    if (oldStatus[slot] === status[slot] && before.marks[slot] === now.marks[slot]) continue;
    if (now.fleet.ids[slot] !== "") cells.push([slot, status[slot]!, now.marks[slot]!]);
  }
  return cells;
}

/** The texts of a fleet are most of its bytes, and rarely change. */
function createColumnTextCache() {
  const written = new WeakMap<object, string>();
  return (column: object): string => {
    const known =
      written.get(column) ?? JSON.stringify(ArrayBuffer.isView(column) ? [...(column as Uint32Array)] : column);
    written.set(column, known);
    return known;
  };
}

function writeDocument(
  revision: number,
  grid: GridState | null,
  names: ReturnType<typeof createColumnTextCache>,
): string {
  const head = `{"revision":${revision},"statuses":${JSON.stringify(NODE_STATUSES)},"marks":${JSON.stringify(NODE_MARKS)}`;
  if (grid === null) return `${head},"places":[],"ids":[],"names":[],"place":[],"status":"","mark":""}`;
  const { fleet, marks } = grid;
  const columns = [
    `"places":${names(fleet.locations)}`,
    `"ids":${names(fleet.ids)}`,
    `"names":${names(fleet.names)}`,
    `"place":${names(fleet.locationIndex)}`,
    `"status":"${digits(fleet.status)}"`,
    `"mark":"${digits(marks)}"`,
  ];
  return `${head},${columns.join(",")}}`;
}

const digits = (column: Uint8Array): string => Buffer.from(column.map((value) => value + ZERO)).toString("latin1");
