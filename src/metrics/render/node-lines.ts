import { NumberColumn } from "../../base/number-column.ts";
import type { Steps } from "../../base/steps.ts";
import { idsOf, type NodeFamily, type ValueColumn, visibleSlots } from "../families/family.ts";
import { escapeLabelValue } from "../text-format.ts";
import { CHUNK_LINES_MAX, type Chunk, type FamilyRenderer, type RenderSource } from "./chunk.ts";
import { type LabelPages, PAGE_SLOTS } from "./label-pages.ts";
import { encodeTexts, type LineFormat, type LineWriter, type Texts } from "./line-writer.ts";

/** Returns the number of lines per node. */
export const linesPerNode = ({ splitBy }: NodeFamily): number => splitBy?.values.length ?? 1;

/** Renders one node family, in chunks of a fixed number of nodes. */
export class NodeFamilyRenderer implements FamilyRenderer {
  readonly #family: NodeFamily;
  readonly #labels: LabelPages;
  readonly #writer: LineWriter;
  readonly #format: LineFormat;
  readonly #nodesPerChunk: number;
  #chunks: NodeChunk[] = [];

  /**
   * `labels` are those of the family's nodes. The caller must update them before each refresh. Renderers may share the
   * writer, which counts the samples.
   */
  constructor(family: NodeFamily, labels: LabelPages, writer: LineWriter) {
    this.#family = family;
    this.#labels = labels;
    this.#writer = writer;
    // A power of 2, so that no chunk extends over two pages of labels.
    this.#nodesPerChunk = 2 ** Math.floor(Math.log2(CHUNK_LINES_MAX / linesPerNode(family)));
    const { splitBy } = family;
    const tails = splitBy?.values.map((value) => `",${splitBy.label}="${escapeLabelValue(value)}"} `) ?? ['"} '];
    this.#format = { texts: encodeTexts([`${family.name}{node_id="`, ...tails]), decimals: family.decimals ?? 0 };
  }

  *refresh(source: RenderSource, previous: RenderSource | null): Steps<void> {
    const slots = idsOf(this.#family.source, source.input).length;
    const count = Math.ceil(slots / this.#nodesPerChunk);
    this.#chunks.length = Math.min(this.#chunks.length, count);
    for (let index = 0; index < count; index++) {
      const start = index * this.#nodesPerChunk;
      const labels = this.#labels.pageOf(start);
      const range = { start, end: Math.min(slots, start + this.#nodesPerChunk), labels };
      const isSame = this.#chunks[index]?.covers(range) === true && this.#hasSameValues(previous!, source, range);
      if (!isSame) this.#chunks[index] = new NodeChunk(this.#family, this.#format, range, source, this.#writer);
      yield;
    }
  }

  chunks(): readonly Chunk[] {
    return this.#chunks.filter(({ samples }) => samples > 0);
  }

  sampleCount(): number {
    return this.#chunks.reduce((sum, { samples }) => sum + samples, 0);
  }

  #hasSameValues(previous: RenderSource, source: RenderSource, { start, end }: SlotRange): boolean {
    const columnsOf = ({ input, visibility }: RenderSource) => [
      ...this.#family.columns(input),
      visibleSlots(visibility, this.#family),
    ];
    const before = columnsOf(previous);
    return columnsOf(source).every((column, index) => isEqual(column, before[index]!, start, end));
  }
}

/** Slots of a chunk, from `start` up to but not including `end`, and the page that has their labels. */
interface SlotRange {
  readonly start: number;
  readonly end: number;
  readonly labels: Texts;
}

/** The lines of some nodes of a family. It keeps no snapshot in memory. */
class NodeChunk implements Chunk {
  readonly samples: number;
  readonly #family: NodeFamily;
  readonly #format: LineFormat;
  readonly #range: SlotRange;

  constructor(family: NodeFamily, format: LineFormat, range: SlotRange, source: RenderSource, writer: LineWriter) {
    this.#family = family;
    this.#format = format;
    this.#range = range;
    this.samples = writer.countNumbers(this.#fill(source, writer));
  }

  /** Returns whether the chunk has these slots, with the same labels. */
  covers({ start, end, labels }: SlotRange): boolean {
    return this.#range.start === start && this.#range.end === end && this.#range.labels === labels;
  }

  render(source: RenderSource, writer: LineWriter): Uint8Array {
    const { start, end, labels } = this.#range;
    const first = start % PAGE_SLOTS;
    this.#fill(source, writer);
    return writer.write(this.#format, labels, first, first + end - start);
  }

  /** Sets the values of the lines, NaN where there is none, and returns their number. */
  #fill({ input, visibility }: RenderSource, writer: LineWriter): number {
    const { start, end } = this.#range;
    const perNode = linesPerNode(this.#family);
    const values = writer.values();
    const visible = visibleSlots(visibility, this.#family).subarray(start, end);
    this.#family.fill(input, start, end, values);
    // Most nodes are visible, so this is faster than a loop over all of them.
    for (let node = visible.indexOf(0); node >= 0; node = visible.indexOf(0, node + 1))
      values.fill(Number.NaN, node * perNode, (node + 1) * perNode);
    return (end - start) * perNode;
  }
}

/** Returns whether the columns have the same values from slot `start` up to but not including `end`. */
function isEqual(column: ValueColumn, other: ValueColumn, start: number, end: number): boolean {
  if (column === other) return true;
  if (column instanceof NumberColumn) return column.equals(other as NumberColumn, start, end);
  return bytesOf(column, start, end).equals(bytesOf(other as typeof column, start, end));
}

/** Returns the bytes of the values from slot `start` up to but not including `end`, which are compared faster than the values. */
function bytesOf(column: Exclude<ValueColumn, NumberColumn>, start: number, end: number): Buffer {
  const { buffer, byteOffset, byteLength } = column.subarray(start, end);
  return Buffer.from(buffer, byteOffset, byteLength);
}
