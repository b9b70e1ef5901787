import { type Child, createElement, nodeLink } from "../dom.ts";
import { type Cell, type FleetModel, markOf, statusOf } from "../fleet/fleet.ts";
import type { NodeOrder, SortColumn } from "../fleet/node-order.ts";
import { markLabel, stateOfMark } from "../fleet/remediation-states.ts";
import { glyphElement, ringElement } from "../fleet/status-icon.ts";
import { humanize } from "../format.ts";

/** Columns of a list of nodes. */
const COLUMNS: readonly (readonly [column: SortColumn, title: string])[] = [
  ["name", "Node"],
  ["status", "Status"],
  ["remediation", "Remediation"],
  ["region", "Region"],
  ["country", "Country"],
  ["id", "Id"],
];

/** Number of columns. */
export const COLUMN_COUNT = COLUMNS.length;

/** Creates the row of column titles, which are buttons that sort. A second press reverses the order. */
export function headerRow(key: string, order: NodeOrder | null, onSort: (order: NodeOrder) => void): HTMLElement {
  const cells = COLUMNS.map(([column, title]) => {
    const isSorted = order?.column === column;
    const isDescending = isSorted && order.isDescending;
    const onclick = () => onSort({ column, isDescending: isSorted && !isDescending });
    const arrow = !isSorted ? "" : isDescending ? " ▼" : " ▲";
    return createElement(
      "th",
      {
        scope: "col",
        class: `column-${column}`,
        "aria-sort": isSorted ? (isDescending ? "descending" : "ascending") : null,
      },
      createElement("button", { type: "button", "data-k": `${key} sort ${column}`, onclick }, `${title}${arrow}`),
    );
  });
  return createElement("tr", {}, ...cells);
}

/** Rows of nodes. A row is recreated only if its node changed. */
export class NodeRows {
  readonly #key: string;
  #rows = new Map<string, HTMLElement>();

  /** `key` distinguishes the links of these rows from those of other lists. */
  constructor(key: string) {
    this.#key = key;
  }

  /** Returns the rows of nodes in their order. Rows of other nodes are forgotten. */
  rowsOf(fleet: FleetModel, cells: readonly Cell[]): readonly HTMLElement[] {
    const rows = new Map(
      cells.map((cell) => {
        const [status, mark] = [statusOf(fleet, cell), markOf(fleet, cell)];
        const shows = JSON.stringify([cell.id, cell.name, cell.region, cell.country, status, mark]);
        return [shows, this.#rows.get(shows) ?? nodeRow(cell, status, mark, this.#key)] as const;
      }),
    );
    this.#rows = rows;
    return [...rows.values()];
  }
}

function nodeRow(cell: Cell, status: string, mark: string, key: string): HTMLElement {
  const values: Partial<Record<SortColumn, readonly Child[]>> = {
    name: [nodeLink(cell.id, cell.name, key)],
    status: [glyphElement(status), humanize(status)],
    remediation: mark === "none" ? [] : [remediationElement(mark)],
    region: [cell.region],
    country: [cell.country],
    id: [cell.id],
  };
  return createElement(
    "tr",
    {},
    ...COLUMNS.map(([column]) => createElement("td", { class: `column-${column}` }, ...values[column]!)),
  );
}

/** Creates the description of a mark, with the ring that the grid draws. */
function remediationElement(mark: string): HTMLElement {
  const state = stateOfMark(mark);
  return createElement("span", { class: "ring-key" }, state ? ringElement(state.name) : null, markLabel(mark));
}
