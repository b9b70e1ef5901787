import { type Child, createButton, createElement, fill, nodeLink } from "../dom.ts";
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
  ["id", "ID"],
];

/** Returns the text of a list for a fleet without nodes, which is not known until the node list has been read. */
export const noNodesText = (isKnown: boolean): string => (isKnown ? "The fleet has no nodes." : "No nodes are known.");

/** Shows the column titles, which are buttons that sort. A second press reverses the order. */
export function showHeader(head: HTMLElement, order: NodeOrder | null, onSort: (order: NodeOrder) => void): void {
  fill(head, order, () => {
    const cells = COLUMNS.map(([column, title]) => {
      const isSorted = order?.column === column;
      const isDescending = isSorted && order.isDescending;
      const button = createButton(title, column, () => onSort({ column, isDescending: isSorted && !isDescending }));
      if (isSorted) button.append(createElement("span", { "aria-hidden": "true" }, isDescending ? " ▼" : " ▲"));
      return createElement(
        `th.column-${column}`,
        { scope: "col", "aria-sort": !isSorted ? null : isDescending ? "descending" : "ascending" },
        button,
      );
    });
    return [createElement("tr", ...cells)];
  });
}

/** Rows of nodes. A row is recreated only if its node changed. */
export class NodeRows {
  #rows = new Map<string, HTMLElement>();

  /** Returns the rows of the nodes with these indexes, in this order. Rows of other nodes are forgotten. */
  rowsOf(fleet: FleetModel, nodes: Uint32Array): readonly HTMLElement[] {
    const rows = new Map(
      Array.from(nodes, (index) => {
        const cell = fleet.cells[index]!;
        const [status, mark] = [statusOf(fleet, cell), markOf(fleet, cell)];
        const shows = JSON.stringify([cell.id, cell.name, cell.region, cell.country, status, mark]);
        return [shows, this.#rows.get(shows) ?? nodeRow(cell, status, mark)] as const;
      }),
    );
    this.#rows = rows;
    return [...rows.values()];
  }
}

function nodeRow(cell: Cell, status: string, mark: string): HTMLElement {
  const values: Partial<Record<SortColumn, readonly Child[]>> = {
    name: [nodeLink(cell.id, cell.name, "row")],
    status: [glyphElement(status), humanize(status)],
    remediation: mark === "none" ? [] : [remediationElement(mark)],
    region: [cell.region],
    country: [cell.country],
    id: [cell.id],
  };
  return createElement("tr", ...COLUMNS.map(([column]) => createElement(`td.column-${column}`, ...values[column]!)));
}

/** Creates the description of a mark, with the ring that the grid draws. */
function remediationElement(mark: string): HTMLElement {
  const state = stateOfMark(mark);
  return createElement("span.ring-key", state ? ringElement(state.name) : null, markLabel(mark));
}
