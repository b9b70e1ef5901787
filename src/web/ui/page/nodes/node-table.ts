import { byId, createElement, keepChildren } from "../dom.ts";
import type { FleetModel } from "../fleet/fleet.ts";
import { type NodeOrder, sortNodes } from "../fleet/node-order.ts";
import { NodeRows, noNodesText, showHeader } from "./node-rows.ts";

/** Height of a row in CSS pixels (see `tbody tr` in node-lists.css). */
const ROW_HEIGHT = 30;
/** Number of rows above and below the visible ones, so that fast scrolling shows no gaps. */
const ROWS_AROUND = 12;

/** The table of all nodes. Only the visible rows are in the document. */
export class NodeTable {
  readonly #box = byId("node-table");
  readonly #body = byId("node-table-rows");
  readonly #rowElements = new NodeRows();
  readonly #above = createSpacer();
  readonly #below = createSpacer();
  readonly #none = createElement("td.muted");
  readonly #noneRow = createElement("tr.no-nodes", this.#none);
  readonly #onSort: (order: NodeOrder) => void;
  #fleet: FleetModel | null = null;
  #nodes: Uint32Array = new Uint32Array();
  #isKnown = false;
  #frame = 0;
  /** Height and scroll position of the box, which are kept because reading them can force a layout of the page. */
  #height = 0;
  #scrollTop = 0;

  /** `onSort` is called when the user chooses an order. */
  constructor(onSort: (order: NodeOrder) => void) {
    this.#onSort = onSort;
    this.#box.addEventListener("scroll", () => this.#measure(), { passive: true });
    new ResizeObserver(() => this.#measure()).observe(this.#box);
  }

  /**
   * Shows the nodes with these indexes in an order. Null means region, country and name. `isKnown` says whether the
   * fleet is known.
   */
  show(fleet: FleetModel, isKnown: boolean, nodes: Uint32Array, order: NodeOrder | null): void {
    this.#fleet = fleet;
    this.#isKnown = isKnown;
    this.#nodes = order === null ? nodes : sortNodes(fleet, nodes, order);
    showHeader(byId("node-table-head"), order, this.#onSort);
    byId("node-table-count").setAttribute("aria-rowcount", String(this.#nodes.length + 1));
    this.#schedule();
  }

  #measure(): void {
    this.#height = this.#box.clientHeight;
    this.#scrollTop = this.#box.scrollTop;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    this.#frame = 0;
    const fleet = this.#fleet;
    if (fleet === null || this.#height === 0) return;
    const first = Math.max(0, Math.min(Math.floor(this.#scrollTop / ROW_HEIGHT), this.#nodes.length) - ROWS_AROUND);
    const end = Math.min(this.#nodes.length, first + Math.ceil(this.#height / ROW_HEIGHT) + 2 * ROWS_AROUND);
    const rows = this.#rowElements.rowsOf(fleet, this.#nodes.subarray(first, end));
    for (const [at, row] of rows.entries()) row.setAttribute("aria-rowindex", String(first + at + 2));
    this.#above.cell.style.height = `${first * ROW_HEIGHT}px`;
    this.#below.cell.style.height = `${(this.#nodes.length - end) * ROW_HEIGHT}px`;
    this.#none.textContent = fleet.cells.length === 0 ? noNodesText(this.#isKnown) : "No node matches the filter.";
    keepChildren(this.#body, [this.#above.row, ...(rows.length === 0 ? [this.#noneRow] : rows), this.#below.row]);
  }
}

/**
 * Creates a placeholder row with the height of the rows that it replaces. It does not span the columns: a narrow screen
 * hides some of them, which would then keep their widths.
 */
function createSpacer() {
  const cell = createElement("td");
  return { cell, row: createElement("tr.spacer", { "aria-hidden": "true" }, cell) };
}
