import type { Cell, FleetModel } from "./fleet.ts";
import { cellCorner, type Layout, marginOf } from "./grid-layout.ts";
import { drawGlyph } from "./status-icon.ts";

/** Paints cells on a canvas: at most once a frame, and only what changed. */
export interface Painter {
  place(fleet: FleetModel, layout: Layout): void;
  /** Repaints cells by their index. */
  touch(indexes: readonly number[]): void;
  highlight(shows: ((cell: Cell) => boolean) | null): void;
  select(id: string | null): void;
  repaint(): void;
}

/** Opacity of cells that are filtered out. */
const DIMMED_ALPHA = 0.16;
/** Opacity of the background of cells that are not online. */
const TINT_ALPHA = 0.22;
/** Glyphs of cells at least so large stand within them; smaller ones fill them. */
const INSET_MIN = 9;

/** Colour of the ring around a cell, by its mark. */
const RING_COLORS: Readonly<Record<string, string>> = {
  shadow: "ring-shadow",
  firing: "ring-firing",
  episode: "ring-episode",
  acting: "ring-episode",
  held: "ring-held",
  awaiting: "ring-awaiting",
};

/** Creates a painter for a canvas. */
export function createPainter(canvas: HTMLCanvasElement): Painter {
  const context = canvas.getContext("2d")!;
  let fleet: FleetModel | null = null;
  let layout: Layout | null = null;
  let shows: ((cell: Cell) => boolean) | null = null;
  let selected: string | null = null;
  let colours: Readonly<Record<string, string>> = {};
  let glyphCache = new Map<string, HTMLCanvasElement>();
  let dirty: Set<number> | "all" = new Set();
  let frame = 0;
  let paints = 0;

  function scheduleFrame(indexes: Iterable<number> | "all"): void {
    if (indexes === "all") dirty = "all";
    else if (dirty !== "all") for (const index of indexes) dirty.add(index);
    if (frame === 0) frame = requestAnimationFrame(paint);
  }

  function paint(): void {
    frame = 0;
    const due = dirty;
    dirty = new Set();
    if (fleet === null || layout === null) return;
    paints++;
    canvas.dataset.paints = String(paints);
    if (due === "all") paintAll(fleet, layout);
    else {
      for (const index of due) {
        const cell = fleet.cells[index];
        if (cell !== undefined) paintCell(fleet, layout, cell, cellCorner(layout, index));
      }
    }
  }

  /** Paints cells grouped by their look, because changing the canvas state is slow. */
  function paintAll(now: FleetModel, { blocks, columns, pitch, size }: Layout): void {
    context.clearRect(0, 0, canvas.width, canvas.height);
    const batches = new Map<number, number[]>();
    const ringed: (readonly [cell: Cell, x: number, y: number])[] = [];
    for (const { first, count, top } of blocks) {
      for (let place = 0; place < count; place++) {
        const cell = now.cells[first + place]!;
        const key = 2 * now.status[cell.slot]! + (shows === null || shows(cell) ? 1 : 0);
        let batch = batches.get(key);
        if (batch === undefined) {
          batch = [];
          batches.set(key, batch);
        }
        const [x, y] = [(place % columns) * pitch, top + Math.floor(place / columns) * pitch];
        batch.push(x, y);
        if (now.mark[cell.slot] !== 0 || cell.id === selected) ringed.push([cell, x, y]);
      }
    }
    for (const [key, corners] of batches) {
      context.globalAlpha = key % 2 === 1 ? 1 : DIMMED_ALPHA;
      paintBatch(now.statuses[key >> 1] ?? "unknown", corners, marginOf(pitch, size), size);
    }
    for (const [cell, x, y] of ringed) {
      context.globalAlpha = shows === null || shows(cell) ? 1 : DIMMED_ALPHA;
      paintRing(now, cell, x, y, size + 2 * marginOf(pitch, size));
    }
    context.globalAlpha = 1;
  }

  function paintBatch(status: string, corners: readonly number[], margin: number, size: number): void {
    // Most cells are online, and small ones have no rounded corners.
    const isPlain = status === "online" && size < INSET_MIN;
    if (isPlain) context.fillStyle = colours[status]!;
    const sprite = cachedGlyph(status, size);
    for (let at = 0; at < corners.length; at += 2) {
      const [x, y] = [corners[at]! + margin, corners[at + 1]! + margin];
      if (isPlain) context.fillRect(x, y, size, size);
      else context.drawImage(sprite, x, y, size, size);
    }
  }

  function paintCell(now: FleetModel, { pitch, size }: Layout, cell: Cell, { x, y }: { x: number; y: number }): void {
    const margin = marginOf(pitch, size);
    context.clearRect(x, y, pitch, pitch);
    context.globalAlpha = shows === null || shows(cell) ? 1 : DIMMED_ALPHA;
    paintBatch(now.statuses[now.status[cell.slot]!] ?? "unknown", [x, y], margin, size);
    paintRing(now, cell, x, y, size + 2 * margin);
    context.globalAlpha = 1;
  }

  function paintRing(now: FleetModel, cell: Cell, x: number, y: number, side: number): void {
    const ring = cell.id === selected ? "ring-selected" : RING_COLORS[now.marks[now.mark[cell.slot]!] ?? ""];
    if (ring !== undefined) drawRing(colours[ring]!, x, y, side);
  }

  /** Within what belongs to the cell, so that its neighbours need not be painted with it. */
  function drawRing(colour: string, x: number, y: number, side: number): void {
    context.strokeStyle = colour;
    context.lineWidth = side < INSET_MIN ? 1 : Math.max(1.5, side / 7);
    const half = context.lineWidth / 2;
    context.strokeRect(x + half, y + half, side - 2 * half, side - 2 * half);
  }

  /** An icon is drawn once for each size, and copied afterwards. */
  function cachedGlyph(status: string, size: number): HTMLCanvasElement {
    const known = glyphCache.get(status);
    if (known !== undefined) return known;
    const sprite = document.createElement("canvas");
    const scale = devicePixelRatio;
    sprite.width = sprite.height = Math.max(1, Math.round(size * scale));
    const pen = sprite.getContext("2d")!;
    pen.scale(sprite.width / size, sprite.height / size);
    pen.fillStyle = pen.strokeStyle = colours[status] ?? "";
    if (status !== "online") {
      pen.globalAlpha = TINT_ALPHA;
      pen.fillRect(0, 0, size, size);
      pen.globalAlpha = 1;
    }
    const inset = status === "online" ? 0 : size >= INSET_MIN ? size * 0.16 : 0;
    drawGlyph(pen, status, inset, inset, size - 2 * inset);
    glyphCache.set(status, sprite);
    return sprite;
  }

  function takeColours(): void {
    glyphCache = new Map();
    const names = [...(fleet?.statuses ?? []), ...new Set(Object.values(RING_COLORS)), "ring-selected"];
    const probe = document.createElement("i");
    canvas.parentElement!.append(probe);
    colours = Object.fromEntries(
      names.map((name) => {
        probe.className = `is-${name}`;
        return [name, getComputedStyle(probe).color];
      }),
    );
    probe.remove();
  }

  const repaint = () => {
    takeColours();
    scheduleFrame("all");
  };

  return {
    place(nextFleet, nextLayout) {
      fleet = nextFleet;
      layout = nextLayout;
      const scale = devicePixelRatio;
      canvas.width = Math.round(nextLayout.width * scale);
      canvas.height = Math.round(nextLayout.height * scale);
      canvas.style.width = `${nextLayout.width}px`;
      canvas.style.height = `${nextLayout.height}px`;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      takeColours();
      // Setting the size clears the canvas, so it is painted at once.
      cancelAnimationFrame(frame);
      dirty = "all";
      paint();
    },
    touch: scheduleFrame,
    highlight(next) {
      shows = next;
      scheduleFrame("all");
    },
    select(id) {
      const indexes = [selected, id].map((each) => fleet?.cells.indexOf(fleet.byId.get(each ?? "")!) ?? -1);
      selected = id;
      scheduleFrame(indexes.filter((index) => index >= 0));
    },
    repaint,
  };
}
