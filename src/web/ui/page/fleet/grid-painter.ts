import type { Cell, FleetModel } from "./fleet.ts";
import { cellCorner, type Layout, marginOf } from "./grid-layout.ts";
import { GridTheme, INSET_SIZE_MIN } from "./grid-theme.ts";
import { REMEDIATION_STATES } from "./remediation-states.ts";

/** Opacity of cells that are filtered out. */
const DIMMED_ALPHA = 0.16;

/** Color of the ring around a cell, by its mark. */
const RING_COLORS: Readonly<Record<string, string>> = Object.fromEntries(
  REMEDIATION_STATES.flatMap(({ name, marks }) => marks.map((mark) => [mark, `ring-${name}`])),
);

/** The fleet and the positions of its cells. */
interface PlacedFleet {
  readonly fleet: FleetModel;
  readonly layout: Layout;
}

/** Paints cells on a canvas, at most once a frame and only those that changed. */
export class GridPainter {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #theme = new GridTheme();
  #placed: PlacedFleet | null = null;
  #shows: ((cell: Cell) => boolean) | null = null;
  #dirty: Set<number> | "all" = new Set();
  #frame = 0;
  #paints = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d")!;
  }

  /** Paints another fleet or layout. */
  place(fleet: FleetModel, layout: Layout): void {
    this.#placed = { fleet, layout };
    const scale = devicePixelRatio;
    this.#canvas.width = Math.round(layout.width * scale);
    this.#canvas.height = Math.round(layout.height * scale);
    this.#canvas.style.width = `${layout.width}px`;
    this.#canvas.style.height = `${layout.height}px`;
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.#loadTheme();
    // Setting the size clears the canvas, so it is painted immediately.
    cancelAnimationFrame(this.#frame);
    this.#dirty = "all";
    this.#paint();
  }

  /** Forgets the fleet until {@link place} is called again, because the grid is hidden. */
  clear(): void {
    this.#placed = null;
  }

  /** Repaints cells by their index. */
  touch(indexes: readonly number[]): void {
    if (this.#dirty !== "all") for (const index of indexes) this.#dirty.add(index);
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  /** Dims the cells that `shows` rejects. Null dims none. */
  highlight(shows: ((cell: Cell) => boolean) | null): void {
    this.#shows = shows;
    this.#touchAll();
  }

  /** Repaints all cells after the colors changed. */
  repaint(): void {
    this.#loadTheme();
    this.#touchAll();
  }

  #touchAll(): void {
    this.#dirty = "all";
    this.touch([]);
  }

  #loadTheme(): void {
    const statuses = this.#placed?.fleet.statuses ?? [];
    const rings = new Set(Object.values(RING_COLORS));
    this.#theme.load(this.#canvas.parentElement!, [...statuses, ...rings]);
  }

  #paint(): void {
    this.#frame = 0;
    const due = this.#dirty;
    this.#dirty = new Set();
    const placed = this.#placed;
    if (placed === null) return;
    this.#paints++;
    this.#canvas.dataset.paints = String(this.#paints);
    this.#paintCells(placed, due === "all" ? this.#paintOnlineCells(placed) : due);
  }

  /**
   * Clears the canvas. If cells are so small that online ones are plain squares, paints every cell as if it were online,
   * column by column. Returns the indexes of the cells that are still to be painted: those that look different, or all.
   */
  #paintOnlineCells({ fleet, layout }: PlacedFleet): Uint32Array {
    const { blocks, columns, pitch, size, width, height } = layout;
    const context = this.#context;
    // The size of the canvas is rounded to whole pixels.
    context.clearRect(0, 0, width + 1, height + 1);
    if (size >= INSET_SIZE_MIN) return fleet.indexes;
    const isShown = (index: number) => this.#isShown(fleet.cells[index]!);
    const areMostShown = this.#shows === null || 2 * fleet.indexes.filter(isShown).length > fleet.cells.length;
    context.globalAlpha = areMostShown ? 1 : DIMMED_ALPHA;
    context.fillStyle = this.#theme.color("online");
    const margin = marginOf(pitch, size);
    for (const { count, top } of blocks) {
      for (let column = 0; column < Math.min(columns, count); column++) {
        const rows = Math.ceil((count - column) / columns);
        context.fillRect(column * pitch + margin, top + margin, size, rows * pitch);
      }
    }
    // The gaps between rows are cleared by filling, because clearRect does not smooth edges that lie within a pixel.
    context.globalAlpha = 1;
    context.globalCompositeOperation = "destination-out";
    for (const { count, top } of blocks) {
      for (let row = 0; row < count / columns; row++) {
        context.fillRect(0, top + row * pitch + margin + size, width, pitch - size);
      }
    }
    context.globalCompositeOperation = "source-over";
    const online = fleet.statuses.indexOf("online");
    return fleet.indexes.filter(
      (index) => fleet.status[index] !== online || fleet.mark[index] !== 0 || isShown(index) !== areMostShown,
    );
  }

  /** Paints cells grouped by their look, because changing the canvas state is slow. */
  #paintCells({ fleet, layout }: PlacedFleet, due: Iterable<number>): void {
    const { blocks, pitch, size } = layout;
    const context = this.#context;
    const batches = new Map<number, number[]>();
    const ringed: (readonly [cell: Cell, x: number, y: number])[] = [];
    for (const index of due) {
      const cell = fleet.cells[index]!;
      const { x, y } = cellCorner(layout, index, blocks[fleet.groupIndex[index]!]);
      context.clearRect(x, y, pitch, pitch);
      const key = 2 * fleet.status[index]! + (this.#isShown(cell) ? 1 : 0);
      let batch = batches.get(key);
      if (batch === undefined) {
        batch = [];
        batches.set(key, batch);
      }
      batch.push(x, y);
      if (fleet.mark[index] !== 0) ringed.push([cell, x, y]);
    }
    for (const [key, corners] of batches) {
      context.globalAlpha = key % 2 === 1 ? 1 : DIMMED_ALPHA;
      this.#paintBatch(fleet.statuses[key >> 1] ?? "unknown", corners, marginOf(pitch, size), size);
    }
    for (const [cell, x, y] of ringed) {
      context.globalAlpha = this.#isShown(cell) ? 1 : DIMMED_ALPHA;
      this.#paintRing(fleet, cell, x, y, size + 2 * marginOf(pitch, size));
    }
    context.globalAlpha = 1;
  }

  #isShown(cell: Cell): boolean {
    return this.#shows === null || this.#shows(cell);
  }

  /** Paints cells of one status. `corners` holds x and y of each in turn. */
  #paintBatch(status: string, corners: readonly number[], margin: number, size: number): void {
    // Most cells are online, and small ones have no rounded corners.
    const isPlain = status === "online" && size < INSET_SIZE_MIN;
    if (isPlain) this.#context.fillStyle = this.#theme.color(status);
    const glyph = this.#theme.glyph(status, size);
    for (let at = 0; at < corners.length; at += 2) {
      const [x, y] = [corners[at]! + margin, corners[at + 1]! + margin];
      if (isPlain) this.#context.fillRect(x, y, size, size);
      else this.#context.drawImage(glyph, x, y, size, size);
    }
  }

  /** Paints the ring of a cell, if it has one, within the cell, so that its neighbors need not be repainted. */
  #paintRing(fleet: FleetModel, cell: Cell, x: number, y: number, side: number): void {
    const ring = RING_COLORS[fleet.marks[fleet.mark[cell.index]!] ?? ""];
    if (ring === undefined) return;
    const width = side < INSET_SIZE_MIN ? 1 : Math.max(1.5, side / 7);
    this.#context.strokeStyle = this.#theme.color(ring);
    this.#context.lineWidth = width;
    this.#context.strokeRect(x + width / 2, y + width / 2, side - width, side - width);
  }
}
