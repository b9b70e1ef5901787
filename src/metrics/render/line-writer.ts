import type { RenderBuffer } from "./chunk.ts";
import type { LabelPage } from "./label-pages.ts";
import { VALUE_BYTES_MAX, writeValue } from "./number-format.ts";

/** The parts that the sample lines of a node family have in common. */
export interface LineFormat {
  /** The text before the label text of the node. */
  readonly head: DataView;
  /** The text between it and the value, for each line of a node. */
  readonly tails: readonly DataView[];
  /** Number of decimals of the values, see `valueText`. */
  readonly decimals: number;
}

/** Bytes copied per step. A copy may read and write up to `COPY_STEP - 1` bytes past its end. */
export const COPY_STEP = 16;
const LINE_FEED = 10;
const ZERO = 48;

/** Returns the view of a text for {@link LineFormat}. */
export function textView(text: string): DataView {
  const bytes = Buffer.alloc(Buffer.byteLength(text) + COPY_STEP);
  bytes.write(text);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/**
 * Writes the lines of `nodes` nodes into the buffer and returns them. The labels are those of the page from index
 * `first`, and the values those in the buffer, grouped by node. NaN leaves a line out.
 */
export function writeLines(
  buffer: RenderBuffer,
  { head, tails, decimals }: LineFormat,
  labels: LabelPage,
  first: number,
  nodes: number,
): Uint8Array {
  const { values } = buffer;
  const headLength = head.byteLength - COPY_STEP;
  const tailLengths = tails.map(({ byteLength }) => byteLength - COPY_STEP);
  // The line feed is one byte.
  const perLine = headLength + Math.max(...tailLengths) + VALUE_BYTES_MAX + 1;
  const labelBytes = labels.starts[first + nodes]! - labels.starts[first]!;
  const { bytes, view } = buffer.reserve(tails.length * (nodes * perLine + labelBytes) + COPY_STEP);
  let at = 0;
  let line = 0;
  for (let node = first; node < first + nodes; node++) {
    const start = labels.starts[node]!;
    const length = labels.starts[node + 1]! - start;
    for (let part = 0; part < tails.length; part++) {
      const value = values[line++]!;
      if (Number.isNaN(value)) continue;
      copy(head, 0, headLength, view, at);
      at += headLength;
      copy(labels.view, start, length, view, at);
      at += length;
      copy(tails[part]!, 0, tailLengths[part]!, view, at);
      at += tailLengths[part]!;
      // Most values are one digit.
      if (decimals === 0 && value >= 0 && value < 10 && (value | 0) === value) bytes[at++] = ZERO + value;
      else at = writeValue(view, at, value, decimals);
      bytes[at++] = LINE_FEED;
    }
  }
  return bytes.subarray(0, at);
}

/** Copies texts of a few dozen bytes, for which a call to `set` takes several times as long. */
function copy(from: DataView, start: number, length: number, to: DataView, at: number): void {
  for (let index = 0; index < length; index += COPY_STEP) {
    to.setBigInt64(at + index, from.getBigInt64(start + index, true), true);
    to.setBigInt64(at + index + 8, from.getBigInt64(start + index + 8, true), true);
  }
}
