import { byId, createElement, createFiller, replaceChildren } from "../dom.ts";
import type { Cell, FleetModel } from "../fleet/fleet.ts";
import { compileFilter, type NodeFilter } from "../fleet/node-filter.ts";
import { type NodeOrder, sortNodes } from "../fleet/node-order.ts";
import { COLUMN_COUNT, headerRow, nodeRow } from "./node-rows.ts";

/** Height of a row, in CSS pixels: see `.node-table` in the style sheet. */
const ROW_HEIGHT = 30;
/** Rows above and below the visible ones, so that fast scrolling shows no gaps. */
const ROWS_AROUND = 12;
const KEY = "table";

/** The table of all nodes. Only the rows in sight are in the document. */
export class NodeTable {
  readonly #box = byId("node-table");
  readonly #body = byId("node-table-rows");
  readonly #fillHead = createFiller(byId("node-table-head"));
  readonly #onSort: (order: NodeOrder) => void;
  #fleet: FleetModel | null = null;
  #rows: readonly Cell[] = [];
  #frame = 0;

  /** `onSort` is called when the user chooses an order. */
  constructor(onSort: (order: NodeOrder) => void) {
    this.#onSort = onSort;
    this.#box.addEventListener("scroll", () => this.#schedule(), { passive: true });
    new ResizeObserver(() => this.#schedule()).observe(this.#box);
  }

  /** Shows the nodes that pass a filter, in an order; null: region, country and name. */
  show(fleet: FleetModel, filter: NodeFilter, order: NodeOrder | null): void {
    const passes = compileFilter(fleet, filter);
    const nodes = passes === null ? fleet.cells : fleet.cells.filter(passes);
    this.#fleet = fleet;
    this.#rows = order === null ? nodes : sortNodes(fleet, nodes, order);
    this.#fillHead(order, () => [headerRow(KEY, order, this.#onSort)]);
    byId("node-table-count").setAttribute("aria-rowcount", String(this.#rows.length + 1));
    this.#schedule();
  }

  #schedule(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    this.#frame = 0;
    const fleet = this.#fleet;
    const { clientHeight, scrollTop } = this.#box;
    if (fleet === null || clientHeight === 0) return;
    const first = Math.max(0, Math.min(Math.floor(scrollTop / ROW_HEIGHT), this.#rows.length) - ROWS_AROUND);
    const end = Math.min(this.#rows.length, first + Math.ceil(clientHeight / ROW_HEIGHT) + 2 * ROWS_AROUND);
    const rows = this.#rows.slice(first, end).map((cell, at) => nodeRow(fleet, cell, KEY, first + at + 2));
    const none = createElement("td", { colspan: COLUMN_COUNT, class: "muted" }, "No node matches the filter.");
    replaceChildren(this.#body, [
      spacer(first),
      ...(rows.length === 0 ? [createElement("tr", {}, none)] : rows),
      spacer(this.#rows.length - end),
    ]);
  }
}

/** Creates a row as high as the rows that it stands for. */
function spacer(rows: number): HTMLElement {
  const cell = createElement("td", { colspan: COLUMN_COUNT });
  cell.style.height = `${rows * ROW_HEIGHT}px`;
  return createElement("tr", { class: "spacer", "aria-hidden": "true" }, cell);
}
