import { type BufferPool, createBufferPool } from "./buffer-pool.ts";
import { createNumberWriter, type NumberWriter } from "./number-format.ts";

/** Lines of a segment: some hundred kilobytes, rendered in well under a millisecond, and still deflated well. */
export const SEGMENT_LINES_MAX = 4_096;

/** What the segments of one renderer share while one of them is rewritten. */
export interface RenderBuffers {
  /** Values of the lines as they are to be; NaN: the line is left out. */
  readonly values: Float64Array;
  readonly changes: LineChanges;
  /** The new values of the changes, by their index. */
  readonly numberWriter: NumberWriter;
  /** Where segments take their memory from. */
  readonly pool: BufferPool;
  /** Label bytes of the lines that come, one after the other. */
  labels: Buffer;
}

/** The lines that differ from the last rendering, in order. */
export interface LineChanges {
  readonly line: Uint32Array;
  /** Where the line begins in the old bytes. */
  readonly start: Uint32Array;
  readonly kind: Uint8Array;
  /** Length of the new value's text. */
  readonly valueLength: Uint8Array;
  /** Length of the label bytes of a line that comes. */
  readonly labelsLength: Uint32Array;
}

/** Kinds of change: another value of the same length or of another, a line that goes, a line that comes. */
export const VALUE_SAME_LENGTH = 0;
export const VALUE_RESIZED = 1;
export const LINE_REMOVED = 2;
export const LINE_ADDED = 3;

/** Room for labels of the usual length; it grows where they are longer. */
const LABELS_BYTES = SEGMENT_LINES_MAX * 128;

/** A bench for segments of up to {@link SEGMENT_LINES_MAX} lines. */
export const createRenderBuffers = (): RenderBuffers => ({
  values: new Float64Array(SEGMENT_LINES_MAX),
  changes: {
    line: new Uint32Array(SEGMENT_LINES_MAX),
    start: new Uint32Array(SEGMENT_LINES_MAX),
    kind: new Uint8Array(SEGMENT_LINES_MAX),
    valueLength: new Uint8Array(SEGMENT_LINES_MAX),
    labelsLength: new Uint32Array(SEGMENT_LINES_MAX),
  },
  numberWriter: createNumberWriter(SEGMENT_LINES_MAX),
  pool: createBufferPool(),
  labels: Buffer.allocUnsafeSlow(LABELS_BYTES),
});

/** No UTF-16 unit takes more bytes in UTF-8. */
const UTF8_BYTES_MAX = 3;

/** Writes `text` at `at` into the room for labels, and gives its length in bytes. */
export function writeLabels(buffers: RenderBuffers, text: string, at: number): number {
  const needed = at + text.length * UTF8_BYTES_MAX;
  if (needed > buffers.labels.length) {
    const larger = Buffer.allocUnsafeSlow(needed * 2);
    larger.set(buffers.labels.subarray(0, at));
    buffers.labels = larger;
  }
  return buffers.labels.write(text, at);
}
