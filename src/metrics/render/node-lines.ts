import { NumberColumn } from "../../base/number-column.ts";
import type { NodeLabel } from "../../model/node.ts";
import type { NodeFamily, RenderInput, ValueColumn } from "../families/family.ts";
import { NODE_INFO } from "../families/node-families.ts";
import { escapeLabelValue } from "../text-format.ts";
import { type Chunk, release } from "./chunk.ts";
import {
  NODE_CHANGED,
  NODE_RELABELED,
  NODE_UNCHANGED,
  type RenderBuffers,
  SEGMENT_LINES_MAX,
} from "./render-buffers.ts";
import { changedLabels, type FamilyRenderer, idsOf, nodeLabel, type RenderFrame } from "./render-frame.ts";
import { createSegment, rewriteSegment, type Segment } from "./segment.ts";
import { linesPerNode } from "./selection.ts";

/** Renders one node family, in segments of a fixed number of nodes. */
export class NodeFamilyRenderer implements FamilyRenderer {
  readonly #family: NodeFamily;
  readonly #buffers: RenderBuffers;
  readonly #nodeLabels: readonly NodeLabel[];
  readonly #perNode: number;
  readonly #nodesPerSegment: number;
  readonly #segments: Segment[] = [];
  /** The part of each line before the id, and the parts after it, by line of a node. */
  readonly #head: string;
  readonly #tails: readonly string[];

  /** `nodeLabels` are the labels of the info family; if they change, a new renderer is needed. */
  constructor(family: NodeFamily, buffers: RenderBuffers, nodeLabels: readonly NodeLabel[]) {
    this.#family = family;
    this.#buffers = buffers;
    this.#nodeLabels = nodeLabels;
    this.#perNode = linesPerNode(family);
    this.#nodesPerSegment = Math.floor(SEGMENT_LINES_MAX / this.#perNode);
    this.#head = `${family.name}{node_id="`;
    const { splitBy } = family;
    this.#tails = splitBy?.values.map((value) => `",${splitBy.label}="${escapeLabelValue(value)}"} `) ?? ['"} '];
  }

  *refresh(frame: RenderFrame): Generator<void, void> {
    const { nodeSource, decimals } = this.#family;
    if (nodeSource === "session_nodes" && frame.sessionsUnchanged && this.#segments.length > 0) return;
    const ids = idsOf(nodeSource, frame);
    const count = Math.ceil(ids.length / this.#nodesPerSegment);
    while (this.#segments.length < count) this.#segments.push(createSegment(this.#nodesPerSegment * this.#perNode));
    for (const removed of this.#segments.splice(count)) releaseSegment(removed);
    for (const [index, segment] of this.#segments.entries()) {
      const start = index * this.#nodesPerSegment;
      const end = Math.min(ids.length, start + this.#nodesPerSegment);
      this.#markChanges(frame, segment, start, end);
      this.#fillChanged(frame, start, end);
      const seriesText = (line: number) => {
        const slot = start + Math.floor(line / this.#perNode);
        return this.#head + escapeLabelValue(ids[slot]!) + this.#tailOf(line, slot, frame.input);
      };
      rewriteSegment(segment, this.#buffers, { decimals, perNode: this.#perNode, seriesText });
      yield;
    }
  }

  chunks(): readonly Chunk[] {
    return this.#segments.flatMap(({ chunk }) => chunk ?? []);
  }

  sampleCount(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.series, 0);
  }

  release(): void {
    this.#segments.splice(0).forEach(releaseSegment);
  }

  /** Marks what has changed in the segment from slot `start` to before `end`. */
  #markChanges(
    { input, visibility, previous, relabeled }: RenderFrame,
    segment: Segment,
    start: number,
    end: number,
  ): void {
    const family = this.#family;
    const { changed } = this.#buffers;
    const previousSlots = idsOf(family.nodeSource, previous).length;
    // A segment without lines may be new, although the previous rendering had these nodes.
    const previousEnd = segment.chunk === null ? start : Math.min(previousSlots, start + this.#nodesPerSegment);
    const commonEnd = Math.max(start, Math.min(end, previousEnd));
    changed.fill(NODE_UNCHANGED).fill(NODE_CHANGED, commonEnd - start, Math.max(end, previousEnd) - start);
    if (previous === null || commonEnd === start) return;
    const columns = family.columns(previous.input, previous.visibility);
    for (const [at, column] of family.columns(input, visibility).entries())
      markDifferences(columns[at]!, column, start, commonEnd, changed);
    const isRelabeled = relabeled[family.nodeSource];
    const [before, now] = [previous.input.snapshot.fleet, input.snapshot.fleet];
    const labels = family === NODE_INFO ? changedLabels(before, now, this.#nodeLabels) : [];
    if (isRelabeled === null && labels.length === 0) return;
    const hasNewLabel = (slot: number) =>
      labels.some((label) => nodeLabel(before, label, slot) !== nodeLabel(now, label, slot));
    for (let slot = start; slot < commonEnd; slot++)
      if (isRelabeled?.[slot] === 1 || hasNewLabel(slot)) changed[slot - start] = NODE_RELABELED;
  }

  /** Fills in the values of the marked nodes of the segment from slot `start` to before `end`. */
  #fillChanged({ input, visibility, previous }: RenderFrame, start: number, end: number): void {
    const { changed, values, previousValues } = this.#buffers;
    const previousSlots = idsOf(this.#family.nodeSource, previous).length;
    values.fill(Number.NaN, (end - start) * this.#perNode);
    for (let from = start; from < end; from++) {
      if (changed[from - start] === NODE_UNCHANGED) continue;
      let to = from + 1;
      while (to < end && changed[to - start] !== NODE_UNCHANGED) to++;
      this.#family.fill(input, visibility, start, from, to, values);
      const previousTo = Math.min(to, previousSlots);
      if (this.#perNode > 1 && previous !== null && previousTo > from)
        this.#family.fill(previous.input, previous.visibility, start, from, previousTo, previousValues);
      from = to;
    }
  }

  #tailOf(line: number, slot: number, { snapshot }: RenderInput): string {
    if (this.#family !== NODE_INFO) return this.#tails[line % this.#perNode]!;
    const pair = (label: NodeLabel) => `",${label}="${escapeLabelValue(nodeLabel(snapshot.fleet, label, slot))}`;
    return `${this.#nodeLabels.map(pair).join("")}"} `;
  }
}

function releaseSegment({ chunk }: Segment): void {
  if (chunk !== null) release(chunk);
}

/** Marks as changed the slots from `start` to before `end`, counted from `start`, in which the columns differ. */
function markDifferences(
  previous: ValueColumn,
  column: ValueColumn,
  start: number,
  end: number,
  marks: Uint8Array,
): void {
  if (column === previous) return;
  if (column instanceof NumberColumn) {
    column.markDifferences(previous as NumberColumn, start, end, marks);
    return;
  }
  const before = previous as typeof column;
  for (let slot = start; slot < end; slot++) if (column[slot] !== before[slot]) marks[slot - start] = NODE_CHANGED;
}
