import { valueText } from "../text-format.ts";
import { LINE_WRITER_BINARY } from "./assembly/line-writer-binary.ts";

/** Maximum number of lines per call: a few hundred kilobytes, which are written in well under a millisecond. */
export const LINES_MAX = 4_096;

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
interface Exports {
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
  /** The text before the label text of a node, then one text for each line of a node, which follows the label text. */
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

const MODULE = new WebAssembly.Module(Buffer.from(LINE_WRITER_BINARY, "base64"));

/**
 * Writes sample lines into its own memory of about a megabyte. Each reader of an exposition has its own writer, so that
 * the lines need not be copied before they are sent.
 */
export class LineWriter {
  readonly #exports: Exports;
  readonly #valuesAt: number;
  readonly #labelsAt: number;
  #values: Float64Array;
  /** The labels in the memory. */
  #labels: Texts | null = null;

  constructor() {
    /** Writes the text of a value that needs JavaScript's conversion, and returns its end. */
    const writeOther = (at: number, value: number, decimals: number) =>
      at + Buffer.from(memory.buffer, at).write(valueText(value, decimals));
    this.#exports = new WebAssembly.Instance(MODULE, { "line-writer": { writeOther } }).exports as Exports;
    const { memory, FREE_MEMORY } = this.#exports;
    this.#valuesAt = FREE_MEMORY.value;
    this.#labelsAt = this.#valuesAt + LINES_MAX * Float64Array.BYTES_PER_ELEMENT;
    this.#reserve(this.#labelsAt);
    this.#values = new Float64Array(memory.buffer, this.#valuesAt, LINES_MAX);
  }

  /**
   * Returns the array to fill with the values of the next lines. It keeps its content between calls. Call this again
   * after {@link write}, which may replace the array.
   */
  values(): Float64Array {
    const { buffer } = this.#exports.memory;
    // The memory has another buffer after it has grown.
    if (this.#values.buffer !== buffer) this.#values = new Float64Array(buffer, this.#valuesAt, LINES_MAX);
    return this.#values;
  }

  /** Returns how many of the first `count` values are not NaN. */
  countNumbers(count: number): number {
    return this.#exports.countNumbers(this.#valuesAt, count);
  }

  /**
   * Writes the lines of the nodes with the labels from index `first` up to but not including `end`, and returns them;
   * they are valid until the next call. The {@link values} are grouped by node. NaN leaves a line out.
   */
  write({ texts, decimals }: LineFormat, labels: Texts, first: number, end: number): Uint8Array {
    const perNode = texts.offsets.length - 2;
    // The line feed is one byte.
    const perLine = lengthOf(texts, 0, 1) + VALUE_BYTES_MAX + 1;
    const perNodeBytes = perNode * perLine + lengthOf(texts, 1, perNode + 1);
    const bytesMax = (end - first) * perNodeBytes + perNode * lengthOf(labels, first, end);
    const formatAt = this.#labelsAt + labels.bytes.length + MARGIN_BYTES;
    const linesAt = formatAt + texts.bytes.length + MARGIN_BYTES;
    this.#reserve(linesAt + bytesMax + MARGIN_BYTES);
    if (this.#labels !== labels) this.#store(labels, this.#labelsAt);
    this.#labels = labels;
    this.#store(texts, formatAt);
    const { memory, writeLines } = this.#exports;
    const linesEnd = writeLines(linesAt, first, end, perNode, this.#valuesAt, this.#labelsAt, formatAt, decimals);
    return new Uint8Array(memory.buffer, linesAt, linesEnd - linesAt);
  }

  #store({ bytes }: Texts, at: number): void {
    new Uint8Array(this.#exports.memory.buffer, at).set(bytes);
  }

  /** Grows the memory to at least `size` bytes. */
  #reserve(size: number): void {
    const { memory } = this.#exports;
    const missing = size - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
  }
}
