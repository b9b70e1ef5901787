import type { Steps } from "../../base/steps.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { slotsById } from "../../policy/cel/field-readers.ts";
import { NODE_MARKS, type RemediationView } from "../../remediation/status/views.ts";
import { type CellChange, cacheStepsByColumn, type FleetGridChange } from "./fleet-columns.ts";

/** The whole fleet in a compact format, and its changes. */
export type FleetGrid = ReturnType<typeof createFleetGrid>;

/** Dependencies of {@link createFleetGrid}. */
interface FleetGridDeps {
  /** Null before the first snapshot, and on a standby. */
  fleet(): Fleet | null;
  readonly marks: RemediationView["nodeMarks"];
}

/** Maximum number of changes in a list, which bounds an event to about 30 KB. */
const CELL_CHANGES_MAX = 2_000;
/** Numbers below 36 are written as one character each. */
const DIGITS = Buffer.from("0123456789abcdefghijklmnopqrstuvwxyz");

/** State at the last refresh. */
interface GridState {
  readonly fleet: Fleet;
  readonly marks: Uint8Array;
}

/** Creates a fleet grid. It does no work until the first refresh. */
export function createFleetGrid(deps: FleetGridDeps) {
  let last: GridState | null = null;
  let revision = 0;
  let document: { readonly revision: number; readonly json: Buffer } | null = null;

  return {
    /**
     * The steps that update the grid to the fleet as of the first step, and to the marks as they are while the steps
     * read them. A mark that changes meanwhile may be outdated until the next refresh. The result of the steps is null
     * if nothing changed. The steps of two updates must not be interleaved.
     */
    *refresh(): Steps<FleetGridChange | null> {
      const fleet = deps.fleet();
      if (fleet === null) {
        if (last === null) return null;
        last = null;
        revision++;
        return { from: revision - 1, revision, cells: null };
      }
      const now: GridState = { fleet, marks: yield* markColumn(fleet, deps.marks) };
      const cells = last === null || !isSameLayout(last.fleet, fleet) ? null : yield* findCellChanges(last, now);
      last = now;
      if (cells?.length === 0) return null;
      revision++;
      return { from: revision - 1, revision, cells };
    },
    revision: () => revision,
    /** The steps that write the `FleetDocument` as of the last refresh before the first step. */
    *document(): Steps<Buffer> {
      const [written, grid] = [revision, last];
      if (document?.revision === written) return document.json;
      const json = yield* writeDocument(written, grid);
      document = { revision: written, json };
      return json;
    },
  };
}

const isSameLayout = (one: Fleet, other: Fleet): boolean =>
  one.ids === other.ids &&
  one.name === other.name &&
  one.locationIndex === other.locationIndex &&
  one.locations === other.locations;

function* markColumn(fleet: Fleet, marks: FleetGridDeps["marks"]): Steps<Uint8Array> {
  const column = new Uint8Array(fleet.slots);
  yield* marks((node, mark) => {
    // Other code may have called it for another fleet since the last step, so the map can't be kept.
    const slot = slotsById(fleet).get(node);
    if (slot !== undefined) column[slot] = Math.max(column[slot]!, NODE_MARKS.indexOf(mark));
  });
  return column;
}

/** The steps that find the changes. Their result is null if there are too many. */
function* findCellChanges(before: GridState, now: GridState): Steps<readonly CellChange[] | null> {
  const cells: CellChange[] = [];
  const [oldStatus, status] = [before.fleet.status, now.fleet.status];
  for (let slot = 0; slot < now.fleet.slots; slot++) {
    if (slot % CELLS_PER_STEP === 0) yield;
    if (oldStatus[slot] === status[slot] && before.marks[slot] === now.marks[slot]) continue;
    if (now.fleet.ids[slot] === "") continue;
    if (cells.length === CELL_CHANGES_MAX) return null;
    cells.push([slot, status[slot]!, now.marks[slot]!]);
  }
  return cells;
}

/** Cells that are compared or written in one step, which takes a fraction of a millisecond. */
const CELLS_PER_STEP = 32_768;

/** Values that are written as JSON in one step, which takes a fraction of a millisecond. */
const VALUES_PER_STEP = 1_024;

/** The steps that write a column as JSON. Ids and names make up most of the document and rarely change. */
const columnText = cacheStepsByColumn(function* writeColumn(column: readonly unknown[] | Uint32Array): Steps<Buffer> {
  const parts: Buffer[] = [Buffer.from("[")];
  for (let begin = 0; begin < column.length; begin += VALUES_PER_STEP) {
    const values = JSON.stringify(Array.from(column.slice(begin, begin + VALUES_PER_STEP))).slice(1, -1);
    parts.push(Buffer.from(begin === 0 ? values : `,${values}`));
    yield;
  }
  return yield* joined([...parts, Buffer.from("]")]);
});

/** The steps that write a column of small numbers as digits, one character each. */
function* digits(column: Uint8Array): Steps<Buffer> {
  const text = Buffer.allocUnsafe(column.length);
  for (let index = 0; index < column.length; index++) {
    if (index % CELLS_PER_STEP === 0) yield;
    text[index] = DIGITS[column[index]!]!;
  }
  return text;
}

/** Bytes that are copied in one step. */
const BYTES_PER_STEP = 262_144;

/** The steps that concatenate parts. Copying tens of megabytes at once would block the event loop. */
function* joined(parts: readonly Buffer[]): Steps<Buffer> {
  const text = Buffer.allocUnsafe(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    for (let begin = 0; begin < part.length; begin += BYTES_PER_STEP) {
      at += part.copy(text, at, begin, begin + BYTES_PER_STEP);
      yield;
    }
  }
  return text;
}

function* writeDocument(revision: number, grid: GridState | null): Steps<Buffer> {
  const head = `{"revision":${revision},"statuses":${JSON.stringify(NODE_STATUSES)},"marks":${JSON.stringify(NODE_MARKS)}`;
  if (grid === null)
    return Buffer.from(`${head},"locations":[],"ids":[],"names":[],"location":[],"status":"","mark":""}`);
  const { fleet, marks } = grid;
  const columns = { locations: fleet.locations, ids: fleet.ids, names: fleet.name, location: fleet.locationIndex };
  const parts: Buffer[] = [Buffer.from(head)];
  for (const [name, column] of Object.entries(columns)) {
    parts.push(Buffer.from(`,"${name}":`), yield* columnText(column));
  }
  for (const [name, column] of Object.entries({ status: fleet.status, mark: marks })) {
    parts.push(Buffer.from(`,"${name}":"`), yield* digits(column), Buffer.from('"'));
  }
  return yield* joined([...parts, Buffer.from("}")]);
}
