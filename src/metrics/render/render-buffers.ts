import { type BufferPool, createBufferPool } from "./chunk.ts";
import { createNumberWriter, type NumberWriter } from "./number-format.ts";

/**
 * Maximum number of lines per segment. They are a few hundred kilobytes, are rendered in well under a millisecond, and
 * compress well.
 */
export const SEGMENT_LINES_MAX = 4_096;

/** Working memory that the segments of a renderer share. */
export interface RenderBuffers {
  /** How each node of a segment, counted from its first, has changed. */
  readonly changed: Uint8Array;
  /** Values of the lines of changed nodes in the previous rendering, if a node has several lines. */
  readonly previousValues: Float64Array;
  /** New values of the lines of changed nodes; NaN leaves a line out. */
  readonly values: Float64Array;
  readonly moves: LineMoves;
  readonly numberWriter: NumberWriter;
  /** Memory of the segments. */
  readonly pool: BufferPool;
  /** Label bytes of the added lines, one after the other. */
  labels: Buffer;
}

/** The lines that are added, removed or resized, in order. */
export interface LineMoves {
  readonly line: Uint32Array;
  readonly kind: Uint8Array;
  /** Length of the label bytes of an added line. */
  readonly labelsLength: Uint32Array;
}

/** Kinds of change of a node: none, values may have changed, its lines are of other series than before. */
export const NODE_UNCHANGED = 0;
export const NODE_CHANGED = 1;
export const NODE_RELABELED = 2;

/** Kinds of move: a new value of another length, a removed line, an added line. */
export const VALUE_RESIZED = 0;
export const LINE_REMOVED = 1;
export const LINE_ADDED = 2;

/** Size of the buffer for labels of the usual length. It grows if they are longer. */
const LABELS_BYTES = SEGMENT_LINES_MAX * 128;

/** Creates buffers for segments of up to {@link SEGMENT_LINES_MAX} lines. */
export const createRenderBuffers = (): RenderBuffers => ({
  changed: new Uint8Array(SEGMENT_LINES_MAX),
  previousValues: new Float64Array(SEGMENT_LINES_MAX),
  values: new Float64Array(SEGMENT_LINES_MAX),
  moves: {
    line: new Uint32Array(SEGMENT_LINES_MAX),
    kind: new Uint8Array(SEGMENT_LINES_MAX),
    labelsLength: new Uint32Array(SEGMENT_LINES_MAX),
  },
  numberWriter: createNumberWriter(),
  pool: createBufferPool(),
  labels: Buffer.allocUnsafeSlow(LABELS_BYTES),
});

/** Maximum length in UTF-8 of a UTF-16 code unit. */
const UTF8_BYTES_MAX = 3;

/** Writes `text` at offset `at` into the label buffer. Returns its length in bytes. */
export function writeLabels(buffers: RenderBuffers, text: string, at: number): number {
  const needed = at + text.length * UTF8_BYTES_MAX;
  if (needed > buffers.labels.length) {
    const larger = Buffer.allocUnsafeSlow(needed * 2);
    larger.set(buffers.labels.subarray(0, at));
    buffers.labels = larger;
  }
  return buffers.labels.write(text, at);
}
