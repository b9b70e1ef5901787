import { valueText } from "../text-format.ts";
import { LINE_WRITER_BINARY } from "./assembly/line-writer-binary.ts";
import { CHUNK_LINES_MAX } from "./chunk.ts";

/** The part of the WebAssembly API that is used here. TypeScript declares it only for browsers. */
declare namespace WebAssembly {
  class Module {
    constructor(binary: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
    readonly exports: unknown;
  }
}

/** The exports of assembly/line-writer.ts. Addresses are offsets in its memory. */
interface LineWriter {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): void };
  readonly FREE_MEMORY: { readonly value: number };
  countNumbers(values: number, count: number): number;
  writeLines(
    at: number,
    first: number,
    end: number,
    perNode: number,
    values: number,
    labels: number,
    format: number,
    decimals: number,
  ): number;
}

/** Texts in UTF-8, as the line writer reads them. Immutable. */
export interface Texts {
  /** The table of offsets and the texts. */
  readonly bytes: Uint8Array;
  /** The table: the offset of each text in the bytes, and of the end of the last one. */
  readonly offsets: Uint32Array;
}

/** Encodes texts. */
export function encodeTexts(texts: readonly string[]): Texts {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const tableBytes = (texts.length + 1) * Uint32Array.BYTES_PER_ELEMENT;
  const bytes = Buffer.allocUnsafeSlow(lengths.reduce((sum, length) => sum + length, tableBytes));
  const offsets = new Uint32Array(bytes.buffer, 0, texts.length + 1);
  offsets[0] = tableBytes;
  for (const [index, text] of texts.entries()) {
    bytes.write(text, offsets[index]!);
    offsets[index + 1] = offsets[index]! + lengths[index]!;
  }
  return { bytes, offsets };
}

/** Length of consecutive texts in bytes. */
const lengthOf = ({ offsets }: Texts, first: number, end: number) => offsets[end]! - offsets[first]!;

/** The parts that the sample lines of a node family have in common. */
export interface LineFormat {
  /** The text before the label text of a node, and then the text after it for each line of a node. */
  readonly texts: Texts;
  /** Number of decimals of the values, see `valueText`. */
  readonly decimals: number;
}

/** Maximum length of the text of a value in bytes. */
const VALUE_BYTES_MAX = 26;
/** Bytes that may be read or written past the end of texts. */
const MARGIN_BYTES = 16;
/** Size of a page of WebAssembly memory. */
const PAGE_BYTES = 65_536;

const writer = createLineWriter();
const { memory } = writer;
const VALUES_AT = writer.FREE_MEMORY.value;
const LABELS_AT = VALUES_AT + CHUNK_LINES_MAX * Float64Array.BYTES_PER_ELEMENT;
reserve(LABELS_AT);
let values = new Float64Array(memory.buffer, VALUES_AT, CHUNK_LINES_MAX);
/** The labels in the memory. */
let storedLabels: Texts | null = null;

function createLineWriter(): LineWriter {
  const module = new WebAssembly.Module(Buffer.from(LINE_WRITER_BINARY, "base64"));
  return new WebAssembly.Instance(module, { "line-writer": { writeOther } }).exports as LineWriter;
}

/** Writes the text of a value that needs JavaScript's conversion, and returns its end. */
function writeOther(at: number, value: number, decimals: number): number {
  return at + Buffer.from(memory.buffer, at).write(valueText(value, decimals));
}

/** Returns the values of the lines to write, which keep their content. Get them again after writing lines. */
export function lineValues(): Float64Array {
  // The memory has another buffer after it has grown.
  if (values.buffer !== memory.buffer) values = new Float64Array(memory.buffer, VALUES_AT, CHUNK_LINES_MAX);
  return values;
}

/** Returns how many of the first `count` values are not NaN. */
export const countNumbers = (count: number): number => writer.countNumbers(VALUES_AT, count);

/**
 * Writes the lines of the nodes with the labels from index `first` up to but not including `end`, and returns them; they
 * are valid until the next call. The {@link lineValues} are grouped by node. NaN leaves a line out.
 */
export function writeLines({ texts, decimals }: LineFormat, labels: Texts, first: number, end: number): Uint8Array {
  const perNode = texts.offsets.length - 2;
  // The line feed is one byte.
  const perLine = lengthOf(texts, 0, 1) + VALUE_BYTES_MAX + 1;
  const perNodeBytes = perNode * perLine + lengthOf(texts, 1, perNode + 1);
  const bytesMax = (end - first) * perNodeBytes + perNode * lengthOf(labels, first, end);
  const formatAt = LABELS_AT + labels.bytes.length + MARGIN_BYTES;
  const linesAt = formatAt + texts.bytes.length + MARGIN_BYTES;
  reserve(linesAt + bytesMax + MARGIN_BYTES);
  if (storedLabels !== labels) store(labels, LABELS_AT);
  storedLabels = labels;
  store(texts, formatAt);
  const linesEnd = writer.writeLines(linesAt, first, end, perNode, VALUES_AT, LABELS_AT, formatAt, decimals);
  return new Uint8Array(memory.buffer, linesAt, linesEnd - linesAt);
}

const store = ({ bytes }: Texts, at: number) => new Uint8Array(memory.buffer, at).set(bytes);

/** Grows the memory to at least `size` bytes. */
function reserve(size: number): void {
  const missing = size - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
}
