import { byId, createElement, fillEach, replaceChildren, setAttributes } from "../dom.ts";
import { formatCount, humanize } from "../format.ts";
import { type Cell, type FleetModel, findNode, markOf, statusOf } from "./fleet.ts";
import { cellAfterKey, cellAt, cellCorner, computeLayout, type Layout } from "./grid-layout.ts";
import { GridPainter } from "./grid-painter.ts";
import { markLabel, needsAttention } from "./remediation-states.ts";

/** Preferred height of the grid in CSS pixels, which keeps the lists below visible. */
const HEIGHT_PREFERRED = 480;
/** Minimum width of the grid for region names beside the nodes rather than above them. */
const SIDE_LABELS_MIN = 620;
const LABEL_WIDTH = 176;
const LABEL_HEIGHT = 18;
const BLOCK_HEIGHT_MIN = 16;
const GAP = 8;
/** The ring of the selected node is at least this large, because cells may be tiny. */
const SELECTED_SIZE_MIN = 16;

/** The fleet as a grid of cells, one for each node, which the user explores with the mouse or the keyboard. */
export class Grid {
  readonly #box = byId("grid");
  readonly #cells = byId("cells");
  readonly #labels = byId("labels");
  readonly #selectedRing = byId("selected");
  readonly #cursor = byId("cursor");
  readonly #tip = byId("tip");
  readonly #painter = new GridPainter(byId<HTMLCanvasElement>("canvas"));
  /** Screen readers announce an option that becomes active, not one whose text changes, so two options alternate. */
  readonly #options = [byId("option-a"), byId("option-b")];
  readonly #onOpen: (id: string) => void;
  #fleet: FleetModel | null = null;
  #layout: Layout | null = null;
  #hasSideLabels = false;
  /** Index of the cell under the keyboard cursor. */
  #focused = 0;
  #hovered: number | null = null;
  /** Id of the selected node. */
  #selected: string | null = null;

  /** `onOpen` is called when a node is opened. */
  constructor(onOpen: (id: string) => void) {
    this.#onOpen = onOpen;
    this.#listen();
    this.#followWidth();
  }

  /** Shows another fleet. */
  show(fleet: FleetModel): void {
    const focusedId = this.#fleet?.cells[this.#focused]?.id ?? this.#selected;
    this.#fleet = fleet;
    this.#focused = this.#indexOf(focusedId) ?? 0;
    // Another node may be under the pointer now.
    this.#hovered = null;
    this.#place();
  }

  /** Repaints nodes whose status or mark changed. */
  touch(indexes: readonly number[]): void {
    if (this.#layout === null) return;
    this.#painter.touch(indexes);
    this.#showLabels();
    this.#showCursor();
  }

  /** Dims the nodes that `shows` rejects. Null dims none. */
  highlight(shows: ((cell: Cell) => boolean) | null): void {
    this.#painter.highlight(shows);
  }

  /** Marks a node and moves the keyboard cursor to it, unless it is already marked. Null removes the mark. */
  select(id: string | null): void {
    if (id === this.#selected) return;
    this.#selected = id;
    this.#focused = this.#indexOf(id) ?? this.#focused;
    this.#showSelected();
  }

  /** Repaints everything after the colors changed. */
  repaint(): void {
    this.#painter.repaint();
  }

  #indexOf(id: string | null): number | undefined {
    return this.#fleet === null || id === null ? undefined : findNode(this.#fleet, id)?.index;
  }

  #listen(): void {
    const cells = this.#cells;
    const hover = (index: number | null) => {
      this.#hovered = index;
      this.#showCursor();
    };
    cells.addEventListener("keydown", (event) => this.#press(event));
    cells.addEventListener("focus", () => {
      // Scrolling to the cursor while the mouse button is down would move another node under the pointer.
      if (cells.matches(":focus-visible")) this.#goTo(this.#focused);
    });
    cells.addEventListener("blur", () => this.#showCursor());
    cells.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") hover(this.#cellUnder(event));
    });
    cells.addEventListener("pointerleave", () => hover(null));
    cells.addEventListener("click", (event) => {
      const index = this.#cellUnder(event);
      if (index === null || this.#fleet === null) return;
      this.#focused = index;
      this.#onOpen(this.#fleet.cells[index]!.id);
    });
  }

  #followWidth(): void {
    let width = 0;
    new ResizeObserver(() => {
      // The layout sets the height itself.
      if (this.#box.clientWidth === width) return;
      width = this.#box.clientWidth;
      this.#place();
    }).observe(this.#box);
  }

  #place(): void {
    const fleet = this.#fleet;
    const width = this.#box.clientWidth;
    // A grid without a width is hidden. It is laid out when it is shown again.
    this.#layout = null;
    if (fleet === null || width === 0) {
      this.#painter.clear();
      return;
    }
    const isSide = width >= SIDE_LABELS_MIN;
    this.#hasSideLabels = isSide;
    this.#layout = computeLayout(
      fleet.groups.map((group) => group.count),
      {
        width: width - (isSide ? LABEL_WIDTH : 0),
        height: HEIGHT_PREFERRED + (isSide ? 0 : fleet.groups.length * (LABEL_HEIGHT + GAP)),
        blockHeight: isSide ? BLOCK_HEIGHT_MIN : 0,
        gap: GAP,
        head: isSide ? 0 : LABEL_HEIGHT,
      },
    );
    this.#cells.style.marginLeft = isSide ? `${LABEL_WIDTH}px` : "0";
    this.#cells.style.height = `${this.#layout.height}px`;
    this.#painter.place(fleet, this.#layout);
    this.#showLabels();
    this.#showCursor();
    this.#showSelected();
  }

  /** Shows the name of each region, and how many of its nodes are online. */
  #showLabels(): void {
    const labels = this.#fleet!.groups.map(({ region, count, online }, index) => ({
      region,
      text: `${formatCount(online)}/${formatCount(count)}`,
      top: this.#layout!.blocks[index]!.top - (this.#hasSideLabels ? 0 : LABEL_HEIGHT),
    }));
    fillEach(this.#labels, labels, ({ region, text, top }) => {
      // The name may be cut off.
      const name = createElement("b", { title: region }, region);
      const label = createElement("div.region", name, createElement("span.muted", text));
      label.style.top = `${top}px`;
      return label;
    });
    this.#labels.classList.toggle("beside", this.#hasSideLabels);
  }

  /** Shows a ring around the selected node, over its neighbors so that it differs from the rings of remediation. */
  #showSelected(): void {
    const [index, layout] = [this.#indexOf(this.#selected), this.#layout];
    this.#selectedRing.hidden = index === undefined || layout === null;
    if (index === undefined || layout === null) return;
    surround(this.#selectedRing, layout, index, Math.max(SELECTED_SIZE_MIN, layout.pitch + 8));
  }

  #showCursor(): void {
    const [fleet, layout] = [this.#fleet, this.#layout];
    const index = this.#hovered ?? (document.activeElement === this.#cells ? this.#focused : null);
    const cell = index === null ? undefined : fleet?.cells[index];
    this.#cursor.hidden = this.#tip.hidden = cell === undefined;
    if (index === null || cell === undefined || layout === null) return;
    const { x, y } = cellCorner(layout, index);
    surround(this.#cursor, layout, index, layout.size + 4);
    replaceChildren(this.#tip, [createElement("b", cell.name), ` ${describeNode(fleet!, cell)}`]);
    const left = Math.min(x + this.#cells.offsetLeft, this.#box.clientWidth - this.#tip.offsetWidth);
    this.#tip.style.transform = `translate(${Math.max(0, left)}px, ${y + layout.size + 8}px)`;
  }

  #goTo(index: number): void {
    this.#focused = index;
    this.#hovered = null;
    this.#showCursor();
    const { cells = [] } = this.#fleet ?? {};
    const cell = cells[index];
    if (cell !== undefined) {
      this.#announce(`${cell.name}, ${describeNode(this.#fleet!, cell)}`, index, cells.length);
    }
    this.#cursor.scrollIntoView({ block: "nearest" });
  }

  /** Announces the node under the cursor. */
  #announce(text: string, index: number, total: number): void {
    this.#options.reverse();
    const [active, other] = this.#options as [HTMLElement, HTMLElement];
    active.textContent = text;
    setAttributes(active, { "aria-selected": "true", "aria-posinset": index + 1, "aria-setsize": total });
    other.setAttribute("aria-selected", "false");
    this.#cells.setAttribute("aria-activedescendant", active.id);
  }

  #press(event: KeyboardEvent): void {
    const [fleet, layout] = [this.#fleet, this.#layout];
    if (fleet === null || layout === null || fleet.cells.length === 0) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moved = cellAfterKey(layout, this.#focused, event.key);
    if (moved !== null) this.#goTo(moved);
    else if (event.key === "t" || event.key === "T") this.#goTo(nextNeedingAttention(fleet, this.#focused));
    else if (event.key === "Enter" || event.key === " ") this.#onOpen(fleet.cells[this.#focused]!.id);
    else return;
    event.preventDefault();
  }

  #cellUnder({ clientX, clientY }: MouseEvent): number | null {
    if (this.#layout === null) return null;
    const { left, top } = this.#cells.getBoundingClientRect();
    return cellAt(this.#layout, clientX - left, clientY - top);
  }
}

/** Places a square element around the middle of a cell. */
function surround(element: HTMLElement, layout: Layout, index: number, side: number): void {
  const { x, y } = cellCorner(layout, index);
  const offset = Math.floor((layout.pitch - side) / 2);
  element.style.width = element.style.height = `${side}px`;
  element.style.transform = `translate(${x + offset}px, ${y + offset}px)`;
}

/** Returns the index of the next node that needs attention, or the given one if no other does. */
function nextNeedingAttention(fleet: FleetModel, from: number): number {
  const { length } = fleet.cells;
  for (let step = 1; step <= length; step++) {
    const index = (from + step) % length;
    const cell = fleet.cells[index]!;
    if (needsAttention(statusOf(fleet, cell), markOf(fleet, cell))) return index;
  }
  return from;
}

/** Returns the status, location and mark of a node, such as `offline, eu-west DE, held`. */
function describeNode(fleet: FleetModel, cell: Cell): string {
  const location = [cell.region, cell.country].filter(Boolean).join(" ");
  return [humanize(statusOf(fleet, cell)), location, markLabel(markOf(fleet, cell))].filter(Boolean).join(", ");
}
