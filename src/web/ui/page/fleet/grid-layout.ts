/** Position of a group of cells, in rows of `columns` cells from the top down. */
interface CellBlock {
  /** Index of its first cell. */
  readonly first: number;
  readonly count: number;
  readonly top: number;
  readonly height: number;
}

/** Positions of all cells, in CSS pixels. */
export interface Layout {
  /** Distance between the left edges of adjacent cells, and between their top edges. */
  readonly pitch: number;
  /** Size of a cell. */
  readonly size: number;
  readonly columns: number;
  readonly width: number;
  readonly height: number;
  readonly blocks: readonly CellBlock[];
}

/** The available space. */
interface AvailableSpace {
  readonly width: number;
  /** Height that the cells should not exceed. */
  readonly height: number;
  /** Minimum height of a block, the height of its label. */
  readonly blockHeight: number;
  /** Gap between two blocks. */
  readonly gap: number;
  /** Space above each block for its name. */
  readonly head: number;
}

/** Possible pitches in CSS pixels, largest first. */
const CELL_PITCHES = [20, 18, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4] as const;
/** Smallest pitch at which the gap between cells is two pixels wide. */
const WIDE_PITCH = 11;

/**
 * Lays out groups of cells at the largest pitch at which they fit. If they fit at none, it is the largest pitch at which
 * they are no higher than at the smallest.
 */
export function computeLayout(counts: readonly number[], space: AvailableSpace): Layout {
  const layouts = CELL_PITCHES.map((pitch) => layoutAtPitch(counts, space, pitch));
  const heightMax = Math.max(space.height, layouts.at(-1)!.height);
  return layouts.find(({ height }) => height <= heightMax)!;
}

function layoutAtPitch(counts: readonly number[], space: AvailableSpace, pitch: number): Layout {
  const columns = Math.max(1, Math.floor(space.width / pitch));
  const blocks: CellBlock[] = [];
  let first = 0;
  let top = 0;
  for (const count of counts) {
    top += space.head + (first > 0 ? space.gap : 0);
    const height = Math.max(Math.ceil(count / columns) * pitch, space.blockHeight);
    blocks.push({ first, count, top, height });
    first += count;
    top += height;
  }
  const size = pitch >= WIDE_PITCH ? pitch - 2 : pitch - 1;
  return { pitch, size, columns, width: columns * pitch, height: top, blocks };
}

/** Returns the upper left corner of a cell. */
export function cellCorner(
  layout: Layout,
  index: number,
  { first, top }: CellBlock = blockOf(layout, index),
): { readonly x: number; readonly y: number } {
  const place = index - first;
  return {
    x: (place % layout.columns) * layout.pitch,
    y: top + Math.floor(place / layout.columns) * layout.pitch,
  };
}

/** Returns the distance from a cell's corner to what is drawn in it. */
export const marginOf = (pitch: number, size: number): number => Math.floor((pitch - size) / 2);

/** Returns the cell at a point, or null if there is none. */
export function cellAt({ blocks, pitch, columns }: Layout, x: number, y: number): number | null {
  const block = blocks.findLast(({ top }) => top <= y);
  const column = Math.floor(x / pitch);
  if (block === undefined || column < 0 || column >= columns) return null;
  const place = Math.floor((y - block.top) / pitch) * columns + column;
  return place < block.count ? block.first + place : null;
}

/**
 * Returns the cell to which a key moves the cursor, or null if the key does not move it. Arrow keys move it by a cell or
 * a row, also into another block, Home and End to the first and last cell of its block, and Page Up and Page Down
 * between blocks.
 */
export function cellAfterKey(layout: Layout, index: number, key: string): number | null {
  const { blocks } = layout;
  const block = blockOf(layout, index);
  const at = blocks.indexOf(block);
  const [before, after] = [blocks[at - 1], blocks[at + 1]];
  switch (key) {
    case "ArrowLeft":
      return Math.max(0, index - 1);
    case "ArrowRight":
      return Math.min(lastOf(blocks.at(-1)!), index + 1);
    case "ArrowUp":
      return up(layout, index, block, before);
    case "ArrowDown":
      return down(layout, index, block, after);
    case "Home":
      return block.first;
    case "End":
      return lastOf(block);
    case "PageDown":
      return after?.first ?? lastOf(block);
    case "PageUp":
      return index > block.first ? block.first : (before?.first ?? 0);
    default:
      return null;
  }
}

function up({ columns }: Layout, index: number, block: CellBlock, before: CellBlock | undefined): number {
  const place = index - block.first;
  if (place >= columns) return index - columns;
  if (before === undefined) return index;
  const lastRow = Math.floor((before.count - 1) / columns) * columns;
  return Math.min(before.first + lastRow + place, lastOf(before));
}

function down({ columns }: Layout, index: number, block: CellBlock, after: CellBlock | undefined): number {
  const place = index - block.first;
  if (Math.floor(place / columns) < Math.floor((block.count - 1) / columns)) {
    return Math.min(index + columns, lastOf(block));
  }
  return after === undefined ? index : Math.min(after.first + (place % columns), lastOf(after));
}

const lastOf = ({ first, count }: CellBlock): number => first + count - 1;

const blockOf = ({ blocks }: Layout, index: number): CellBlock => blocks.find((block) => index <= lastOf(block))!;
