import { type BufferPool, type Chunk, createChunk, release } from "./chunk.ts";
import {
  LINE_ADDED,
  LINE_REMOVED,
  NODE_CHANGED,
  NODE_UNCHANGED,
  type RenderBuffers,
  VALUE_RESIZED,
  writeLabels,
} from "./render-buffers.ts";

/** Consecutive sample lines of a family, kept from one rendering to the next. */
export interface Segment {
  /** The finished lines, or null while there are none. */
  chunk: Chunk | null;
  /** Lines in the chunk. */
  series: number;
  /** Offset of each line in the chunk, and of the end of the last one. A line that is left out has no bytes. */
  readonly starts: Uint32Array;
  /** Length of each line's value in bytes. */
  readonly valueLengths: Uint8Array;
}

/** How the lines of a segment are written. */
export interface LineFormat {
  /** Number of decimals of the values, see {@link valueText}. */
  readonly decimals: number;
  /** Number of lines of each node. */
  readonly perNode: number;
  /** Returns the part of a line before the value, including the space. */
  readonly seriesText: (line: number) => string;
}

/** Creates an empty segment of at most `lines` lines. */
export const createSegment = (lines: number): Segment => ({
  chunk: null,
  series: 0,
  starts: new Uint32Array(lines + 1),
  valueLengths: new Uint8Array(lines),
});

/**
 * Updates the lines of the nodes that are marked as changed to the values in the buffers. If none of them needs to be
 * written, the chunk stays the same; otherwise it is a new one.
 */
export function rewriteSegment(segment: Segment, buffers: RenderBuffers, format: LineFormat): void {
  const moves = overwriteValues(segment, buffers, format);
  if (moves === 0) return;
  const size = measureMoves(segment, buffers, format, moves);
  moveLines(segment, buffers, format, moves, buffers.pool.claim(size), size);
}

/**
 * Overwrites the values whose text keeps its length. Lists the lines that are added, removed or resized in the buffers,
 * and returns their count.
 */
function overwriteValues(segment: Segment, buffers: RenderBuffers, { decimals, perNode }: LineFormat): number {
  const { starts, valueLengths } = segment;
  const { changed, previousValues, values, moves, numberWriter } = buffers;
  let bytes: Uint8Array | null = null;
  let count = 0;
  for (let node = 0; node * perNode < valueLengths.length; node++) {
    const change = changed[node];
    if (change === NODE_UNCHANGED) continue;
    for (let line = node * perNode; line < (node + 1) * perNode; line++) {
      const value = values[line]!;
      const end = starts[line + 1]!;
      const hadLine = end > starts[line]!;
      const isAbsent = Number.isNaN(value);
      if (isAbsent && !hadLine) continue;
      const keepsLine = hadLine && change === NODE_CHANGED && !isAbsent;
      if (keepsLine && perNode > 1 && value === previousValues[line]) continue;
      if (
        keepsLine &&
        valueLengths[line] === 1 &&
        decimals === 0 &&
        (value | 0) === value &&
        value >= 0 &&
        value < 10
      ) {
        // A digit for a digit, as in the states of a node, which are half of all lines.
        bytes ??= writableBytes(segment, buffers.pool);
        bytes[end - 2] = ZERO + value;
      } else if (keepsLine && numberWriter.measure(value, decimals) === valueLengths[line]) {
        bytes ??= writableBytes(segment, buffers.pool);
        numberWriter.write(bytes, end - 1);
      } else {
        moves.line[count] = line;
        moves.kind[count++] = isAbsent ? LINE_REMOVED : keepsLine ? VALUE_RESIZED : LINE_ADDED;
      }
    }
  }
  return count;
}

const ZERO = 48;

/** Gives the segment a new chunk of the same bytes that no reader retains, and returns its bytes. */
function writableBytes(segment: Segment, pool: BufferPool): Uint8Array {
  const { bytes, references, recycle } = segment.chunk!;
  if (references === 1) {
    segment.chunk = createChunk(bytes, recycle);
    return bytes;
  }
  const memory = pool.claim(bytes.length);
  memory.set(bytes);
  replaceChunk(segment, pool, memory, bytes.length);
  return memory;
}

/** Replaces the segment's chunk by the first `size` bytes of a buffer of the pool. */
function replaceChunk(segment: Segment, pool: BufferPool, memory: Uint8Array, size: number): void {
  const old = segment.chunk;
  segment.chunk = size === 0 ? null : createChunk(memory.subarray(0, size), () => pool.giveBack(memory));
  if (old !== null) release(old);
}

/** Prepares the labels of added lines. Returns the size of the segment after all moves. */
function measureMoves(segment: Segment, buffers: RenderBuffers, format: LineFormat, count: number): number {
  const { starts, valueLengths } = segment;
  const { values, moves, numberWriter } = buffers;
  let size = segment.chunk?.bytes.length ?? 0;
  let labelsEnd = 0;
  for (let move = 0; move < count; move++) {
    const line = moves.line[move]!;
    const kind = moves.kind[move]!;
    size -= kind === VALUE_RESIZED ? valueLengths[line]! : starts[line + 1]! - starts[line]!;
    if (kind === LINE_REMOVED) continue;
    size += numberWriter.measure(values[line]!, format.decimals);
    if (kind === VALUE_RESIZED) continue;
    const labelsLength = writeLabels(buffers, format.seriesText(line), labelsEnd);
    moves.labelsLength[move] = labelsLength;
    labelsEnd += labelsLength;
    size += labelsLength + 1;
  }
  return size;
}

const LINE_FEED = 10;
const EMPTY_BYTES = new Uint8Array(0);

/**
 * Writes the segment's new lines, of `size` bytes, into `target`, and updates the segment. The bytes between two moves
 * are copied at once.
 */
function moveLines(
  segment: Segment,
  buffers: RenderBuffers,
  { decimals }: LineFormat,
  count: number,
  target: Uint8Array,
  size: number,
): void {
  const { starts, valueLengths } = segment;
  const { values, moves, numberWriter } = buffers;
  const old = segment.chunk?.bytes ?? EMPTY_BYTES;
  /** Bytes of `old` that have been copied or replaced, and bytes written to `target`. */
  let from = 0;
  let to = 0;
  let labelsStart = 0;
  /** Lines whose start has been updated. */
  let placed = 0;
  for (let move = 0; move < count; move++) {
    const line = moves.line[move]!;
    const kind = moves.kind[move]!;
    const start = starts[line]!;
    const end = starts[line + 1]!;
    for (const shift = to - from; placed <= line; placed++) starts[placed]! += shift;
    // If only the length of the value changes, the labels belong to this run and the line feed to the next.
    const cut = kind === VALUE_RESIZED ? end - 1 - valueLengths[line]! : start;
    if (cut > from) target.set(old.subarray(from, cut), to);
    to += cut - from;
    from = kind === VALUE_RESIZED ? end - 1 : end;
    if (kind === LINE_REMOVED) {
      segment.series--;
      continue;
    }
    if (kind === LINE_ADDED) {
      const labelsLength = moves.labelsLength[move]!;
      target.set(buffers.labels.subarray(labelsStart, labelsStart + labelsLength), to);
      labelsStart += labelsLength;
      to += labelsLength;
      if (start === end) segment.series++;
    }
    valueLengths[line] = numberWriter.measure(values[line]!, decimals);
    to += valueLengths[line]!;
    numberWriter.write(target, to);
    if (kind === LINE_ADDED) target[to++] = LINE_FEED;
  }
  for (const shift = to - from; placed < starts.length; placed++) starts[placed]! += shift;
  if (from < old.length) target.set(old.subarray(from), to);
  replaceChunk(segment, buffers.pool, target, size);
}
