import { createPiece, type Piece, release } from "./chunk.ts";
import { overwrite, splice } from "./segment-update.ts";
import { type Changes, FRESH, GONE, RESIZED, SAME_LENGTH, type Workbench, writeLabels } from "./render-buffers.ts";

/** A run of a family's sample lines, kept from one rendering to the next. */
export interface Segment {
  /** The finished lines; null while there are none. */
  piece: Piece | null;
  /** Lines in the piece. */
  series: number;
  /** Values as rendered; NaN: left out. */
  readonly values: Float64Array;
  /** Bytes of each line; 0: left out. */
  readonly lengths: Uint32Array;
  /** Bytes of each line's value. */
  readonly valueLengths: Uint8Array;
}

/** What stands before the value in a line, the blank included. */
export type SeriesText = (line: number) => string;

/** Whether the line speaks of another series than it did. */
export type Relabelled = (line: number) => boolean;

/** A segment of at most `lines` lines, none of them present. */
export const createSegment = (lines: number): Segment => ({
  piece: null,
  series: 0,
  values: new Float64Array(lines).fill(Number.NaN),
  lengths: new Uint32Array(lines),
  valueLengths: new Uint8Array(lines),
});

/**
 * Brings the segment to the values on the bench. Bytes that stay are copied in runs as long as they come, or not at all
 * where nobody else holds the piece and no line moves; labels are written only for lines that come. If nothing changed,
 * the piece stays as it is; otherwise it is another one.
 */
export function rewrite(
  segment: Segment,
  bench: Workbench,
  seriesText: SeriesText,
  relabelled: Relabelled | null,
): void {
  const count = relabelled === null ? findChanges(segment, bench) : findAllChanges(segment, bench, relabelled);
  if (count === 0) return;
  const size = measure(segment, bench, count, seriesText);
  const old = segment.piece;
  if (old?.holders === 1 && keepsLayout(bench.changes, count)) {
    overwrite(segment, bench, old.bytes, 0, count, 0);
    segment.piece = createPiece(old.bytes, old.recycle);
    return;
  }
  const memory = bench.pool.claim(size);
  splice(segment, bench, count, old?.bytes ?? nothing, memory);
  segment.piece = size === 0 ? null : createPiece(memory.subarray(0, size), () => bench.pool.giveBack(memory));
  if (old !== null) release(old);
}

const nothing = new Uint8Array(0);

/** Whether no line comes, goes or moves. */
function keepsLayout({ kind }: Changes, count: number): boolean {
  for (let change = 0; change < count; change++) if (kind[change] !== SAME_LENGTH) return false;
  return true;
}

/** Finds the lines whose value changed, and gives their count. */
function findChanges({ values, lengths }: Segment, { values: next, changes }: Workbench): number {
  let count = 0;
  let start = 0;
  for (let line = 0; line < values.length; line++) {
    const value = next[line]!;
    const before = values[line]!;
    if (value !== before && !(Number.isNaN(value) && Number.isNaN(before))) {
      changes.line[count] = line;
      changes.start[count] = start;
      changes.kind[count++] = SAME_LENGTH;
    }
    start += lengths[line]!;
  }
  return count;
}

/** The same, with the lines that speak of another series, whatever their value. Apart, to keep the usual case lean. */
function findAllChanges(
  { values, lengths }: Segment,
  { values: next, changes }: Workbench,
  relabelled: Relabelled,
): number {
  let count = 0;
  let start = 0;
  for (let line = 0; line < values.length; line++) {
    const value = next[line]!;
    const before = values[line]!;
    const absent = Number.isNaN(value) && Number.isNaN(before);
    const renamed = !absent && relabelled(line);
    if (renamed || (value !== before && !absent)) {
      changes.line[count] = line;
      changes.start[count] = start;
      changes.kind[count++] = renamed ? FRESH : SAME_LENGTH;
    }
    start += lengths[line]!;
  }
  return count;
}

/** Settles kind and lengths of each change, and gives the size of the bytes to come. */
function measure(segment: Segment, bench: Workbench, count: number, seriesText: SeriesText): number {
  const { lengths, valueLengths } = segment;
  const { values: next, changes, numerals } = bench;
  let size = segment.piece?.bytes.length ?? 0;
  let labelsEnd = 0;
  for (let change = 0; change < count; change++) {
    const line = changes.line[change]!;
    const value = next[line]!;
    if (Number.isNaN(value)) {
      changes.kind[change] = GONE;
      size -= lengths[line]!;
      continue;
    }
    const valueLength = numerals.take(change, value);
    changes.valueLength[change] = valueLength;
    if (changes.kind[change] === FRESH || lengths[line] === 0) {
      const labelsLength = writeLabels(bench, seriesText(line), labelsEnd);
      changes.kind[change] = FRESH;
      changes.labelsLength[change] = labelsLength;
      labelsEnd += labelsLength;
      size += labelsLength + valueLength + 1 - lengths[line]!;
    } else if (valueLength !== valueLengths[line]) {
      changes.kind[change] = RESIZED;
      size += valueLength - valueLengths[line]!;
    }
  }
  return size;
}
