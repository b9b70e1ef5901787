import { type BufferPool, type Chunk, createChunk, release } from "./chunk.ts";
import { LINE_ADDED, LINE_REMOVED, type RenderBuffers, VALUE_RESIZED, writeLabels } from "./render-buffers.ts";

/** Consecutive sample lines of a family, kept from one rendering to the next. */
export interface Segment {
  /** The finished lines, or null while there are none. */
  chunk: Chunk | null;
  /** Lines in the chunk. */
  series: number;
  /** Length of each line in bytes: 0 for a line that is left out, and a few thousand at most. */
  readonly lengths: Uint16Array;
  /** Length of each line's value in bytes. */
  readonly valueLengths: Uint8Array;
}

/** How the lines of a segment are written. */
export interface LineFormat {
  /** Number of decimals of the values, see {@link valueText}. */
  readonly decimals: number;
  /** Returns the part of a line before the value, including the space. */
  readonly seriesText: (line: number) => string;
  /** Returns whether a line belongs to a different series than before. Null if none does. */
  readonly isRelabeled: ((line: number) => boolean) | null;
}

/** Creates an empty segment of at most `lines` lines. */
export const createSegment = (lines: number): Segment => ({
  chunk: null,
  series: 0,
  lengths: new Uint16Array(lines),
  valueLengths: new Uint8Array(lines),
});

/**
 * Updates the segment from the values of the previous rendering to the next ones, both of which are in the buffers. If
 * nothing changed, the chunk stays the same; otherwise it is a new one.
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
function overwriteValues(segment: Segment, buffers: RenderBuffers, { decimals, isRelabeled }: LineFormat): number {
  const { lengths, valueLengths } = segment;
  const { previousValues, values, moves, numberWriter } = buffers;
  let bytes: Uint8Array | null = null;
  let count = 0;
  /** Where the line ends in the chunk. */
  let end = 0;
  for (let line = 0; line < lengths.length; line++) {
    const length = lengths[line]!;
    end += length;
    const value = values[line]!;
    const before = previousValues[line]!;
    if (value === before && isRelabeled === null) continue;
    const isAbsent = Number.isNaN(value);
    if (isAbsent && Number.isNaN(before)) continue;
    const relabeled = isRelabeled?.(line) === true;
    if (value === before && !relabeled) continue;
    const keepsLine = length > 0 && !relabeled && !isAbsent;
    if (keepsLine && valueLengths[line] === 1 && decimals === 0 && (value | 0) === value && value >= 0 && value < 10) {
      // A digit for a digit, as in the states of a node, which are half of all lines.
      bytes ??= writableBytes(segment, buffers.pool);
      bytes[end - 2] = ZERO + value;
    } else if (keepsLine && numberWriter.measure(value, decimals) === valueLengths[line]) {
      bytes ??= writableBytes(segment, buffers.pool);
      numberWriter.write(bytes, end - 1);
    } else {
      moves.line[count] = line;
      moves.end[count] = end;
      moves.kind[count++] = isAbsent ? LINE_REMOVED : keepsLine ? VALUE_RESIZED : LINE_ADDED;
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
  const { lengths, valueLengths } = segment;
  const { values, moves, numberWriter } = buffers;
  let size = segment.chunk?.bytes.length ?? 0;
  let labelsEnd = 0;
  for (let move = 0; move < count; move++) {
    const line = moves.line[move]!;
    const kind = moves.kind[move]!;
    size -= kind === VALUE_RESIZED ? valueLengths[line]! : lengths[line]!;
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
  const { lengths, valueLengths } = segment;
  const { values, moves, numberWriter } = buffers;
  const old = segment.chunk?.bytes ?? EMPTY_BYTES;
  /** Bytes of `old` that have been copied or replaced, and bytes written to `target`. */
  let from = 0;
  let to = 0;
  let labelsStart = 0;
  for (let move = 0; move < count; move++) {
    const line = moves.line[move]!;
    const kind = moves.kind[move]!;
    const end = moves.end[move]!;
    const length = lengths[line]!;
    const valueLength = kind === LINE_REMOVED ? 0 : numberWriter.measure(values[line]!, decimals);
    // If only the length of the value changes, the labels belong to this run and the line feed to the next.
    const cut = kind === VALUE_RESIZED ? end - 1 - valueLengths[line]! : end - length;
    if (cut > from) target.set(old.subarray(from, cut), to);
    to += cut - from;
    from = kind === VALUE_RESIZED ? end - 1 : end;
    if (kind === LINE_REMOVED) {
      segment.series--;
      lengths[line] = 0;
      continue;
    }
    if (kind === VALUE_RESIZED) lengths[line]! += valueLength - valueLengths[line]!;
    if (kind === LINE_ADDED) {
      const labelsLength = moves.labelsLength[move]!;
      lengths[line] = labelsLength + valueLength + 1;
      target.set(buffers.labels.subarray(labelsStart, labelsStart + labelsLength), to);
      labelsStart += labelsLength;
      to += labelsLength;
      if (length === 0) segment.series++;
    }
    valueLengths[line] = valueLength;
    to += valueLength;
    numberWriter.write(target, to);
    if (kind === LINE_ADDED) target[to++] = LINE_FEED;
  }
  if (from < old.length) target.set(old.subarray(from), to);
  replaceChunk(segment, buffers.pool, target, size);
}
