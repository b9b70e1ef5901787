import { type Chunk, createChunk, release } from "./chunk.ts";
import {
  LINE_ADDED,
  LINE_REMOVED,
  type LineChanges,
  type RenderBuffers,
  VALUE_RESIZED,
  VALUE_SAME_LENGTH,
  writeLabels,
} from "./render-buffers.ts";

/** Consecutive sample lines of a family, kept from one rendering to the next. */
export interface Segment {
  /** The finished lines, or null while there are none. */
  chunk: Chunk | null;
  /** Lines in the chunk. */
  series: number;
  /** Values as rendered, or NaN if left out. */
  readonly values: Float64Array;
  /** Length of each line in bytes, or 0 if it is left out. */
  readonly lengths: Uint32Array;
  /** Length of each line's value in bytes. */
  readonly valueLengths: Uint8Array;
}

/** Returns the part of a line before the value, including the space. */
type SeriesText = (line: number) => string;

/** Returns whether the line belongs to a different series than before. */
export type IsRelabeled = (line: number) => boolean;

/** Creates an empty segment of at most `lines` lines. */
export const createSegment = (lines: number): Segment => ({
  chunk: null,
  series: 0,
  values: new Float64Array(lines).fill(Number.NaN),
  lengths: new Uint32Array(lines),
  valueLengths: new Uint8Array(lines),
});

/**
 * Updates the segment to the values in the buffers. Unchanged bytes are copied in runs as long as possible; labels are
 * written only for added lines. If no line moves and no reader retains the chunk, its values are overwritten in place.
 * If nothing changed, the chunk stays the same; otherwise it is a new one.
 */
export function rewriteSegment(
  segment: Segment,
  buffers: RenderBuffers,
  seriesText: SeriesText,
  relabeled: IsRelabeled | null,
): void {
  const count = relabeled === null ? findChanges(segment, buffers) : findAllChanges(segment, buffers, relabeled);
  if (count === 0) return;
  const size = measureChanges(segment, buffers, count, seriesText);
  const oldBytes = segment.chunk;
  if (oldBytes?.references === 1 && keepsLayout(buffers.changes, count)) {
    overwriteValues(segment, buffers, oldBytes.bytes, 0, count, 0);
    segment.chunk = createChunk(oldBytes.bytes, oldBytes.recycle);
    return;
  }
  const memory = buffers.pool.claim(size);
  spliceLines(segment, buffers, count, oldBytes?.bytes ?? EMPTY_BYTES, memory);
  segment.chunk = size === 0 ? null : createChunk(memory.subarray(0, size), () => buffers.pool.giveBack(memory));
  if (oldBytes !== null) release(oldBytes);
}

const EMPTY_BYTES = new Uint8Array(0);

/** Returns whether no line is added, removed or moved. */
function keepsLayout({ kind }: LineChanges, count: number): boolean {
  for (let change = 0; change < count; change++) if (kind[change] !== VALUE_SAME_LENGTH) return false;
  return true;
}

/** Finds the lines whose value changed. Returns their count. */
function findChanges({ values, lengths }: Segment, { values: next, changes }: RenderBuffers): number {
  let count = 0;
  let start = 0;
  for (let line = 0; line < values.length; line++) {
    const value = next[line]!;
    const before = values[line]!;
    if (value !== before && !(Number.isNaN(value) && Number.isNaN(before))) {
      changes.line[count] = line;
      changes.start[count] = start;
      changes.kind[count++] = VALUE_SAME_LENGTH;
    }
    start += lengths[line]!;
  }
  return count;
}

/**
 * Like {@link findChanges}, but includes lines that belong to a different series. It is a separate function to keep the
 * usual case fast.
 */
function findAllChanges(
  { values, lengths }: Segment,
  { values: next, changes }: RenderBuffers,
  relabeled: IsRelabeled,
): number {
  let count = 0;
  let start = 0;
  for (let line = 0; line < values.length; line++) {
    const value = next[line]!;
    const before = values[line]!;
    const isAbsent = Number.isNaN(value) && Number.isNaN(before);
    const isRelabeled = !isAbsent && relabeled(line);
    if (isRelabeled || (value !== before && !isAbsent)) {
      changes.line[count] = line;
      changes.start[count] = start;
      changes.kind[count++] = isRelabeled ? LINE_ADDED : VALUE_SAME_LENGTH;
    }
    start += lengths[line]!;
  }
  return count;
}

/** Determines the kind and the lengths of each change. Returns the size of the new bytes. */
function measureChanges(segment: Segment, buffers: RenderBuffers, count: number, seriesText: SeriesText): number {
  const { lengths, valueLengths } = segment;
  const { values: next, changes, numberWriter } = buffers;
  let size = segment.chunk?.bytes.length ?? 0;
  let labelsEnd = 0;
  for (let change = 0; change < count; change++) {
    const line = changes.line[change]!;
    const value = next[line]!;
    if (Number.isNaN(value)) {
      changes.kind[change] = LINE_REMOVED;
      size -= lengths[line]!;
      continue;
    }
    const valueLength = numberWriter.measure(change, value);
    changes.valueLength[change] = valueLength;
    if (changes.kind[change] === LINE_ADDED || lengths[line] === 0) {
      const labelsLength = writeLabels(buffers, seriesText(line), labelsEnd);
      changes.kind[change] = LINE_ADDED;
      changes.labelsLength[change] = labelsLength;
      labelsEnd += labelsLength;
      size += labelsLength + valueLength + 1 - lengths[line]!;
    } else if (valueLength !== valueLengths[line]) {
      changes.kind[change] = VALUE_RESIZED;
      size += valueLength - valueLengths[line]!;
    }
  }
  return size;
}

const LINE_FEED = 10;

/**
 * Writes the segment's new lines into `target`, which are the old lines with the changes applied. Updates the segment's
 * values and lengths. Values that keep their length are overwritten after the run of old bytes around them has been
 * copied, so that one copy covers as many lines as possible.
 */
function spliceLines(
  segment: Segment,
  buffers: RenderBuffers,
  count: number,
  old: Uint8Array,
  target: Uint8Array,
): void {
  const { values, lengths, valueLengths } = segment;
  const { changes, numberWriter } = buffers;
  let from = 0;
  let to = 0;
  let labelsStart = 0;
  let pendingChange = 0;
  for (let change = 0; change < count; change++) {
    const line = changes.line[change]!;
    const kind = changes.kind[change]!;
    if (kind === VALUE_SAME_LENGTH) continue;

    const start = changes.start[change]!;
    const length = lengths[line]!;
    // If only the length of the value changes, the labels belong to this run and the line feed to the next.
    const cut = kind === VALUE_RESIZED ? start + length - 1 - valueLengths[line]! : start;
    if (cut > from) {
      target.set(old.subarray(from, cut), to);
      overwriteValues(segment, buffers, target, pendingChange, change, to - from);
      to += cut - from;
    }
    from = kind === VALUE_RESIZED ? start + length - 1 : start + length;
    pendingChange = change + 1;
    values[line] = buffers.values[line]!;

    if (kind === LINE_REMOVED) {
      lengths[line] = 0;
      if (length > 0) segment.series--;
      continue;
    }
    const valueLength = changes.valueLength[change]!;
    if (kind === LINE_ADDED) {
      const labelsLength = changes.labelsLength[change]!;
      target.set(buffers.labels.subarray(labelsStart, labelsStart + labelsLength), to);
      labelsStart += labelsLength;
      to += labelsLength;
      lengths[line] = labelsLength + valueLength + 1;
      if (length === 0) segment.series++;
    } else {
      lengths[line] = length + valueLength - valueLengths[line]!;
    }
    valueLengths[line] = valueLength;
    to += valueLength;
    numberWriter.write(change, target, to);
    if (kind === LINE_ADDED) target[to++] = LINE_FEED;
  }
  if (from < old.length) target.set(old.subarray(from), to);
  overwriteValues(segment, buffers, target, pendingChange, count, to - from);
}

/**
 * Overwrites the values of the changes from `first` to before `last`, all of which keep their length, at their old
 * offsets plus `shift`.
 */
function overwriteValues(
  { values, lengths }: Segment,
  { values: next, changes, numberWriter }: RenderBuffers,
  bytes: Uint8Array,
  first: number,
  last: number,
  shift: number,
): void {
  for (let change = first; change < last; change++) {
    const line = changes.line[change]!;
    values[line] = next[line]!;
    numberWriter.write(change, bytes, changes.start[change]! + lengths[line]! - 1 + shift);
  }
}
