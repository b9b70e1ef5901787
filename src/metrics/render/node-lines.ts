import type { NodeLabel } from "../../model/node.ts";
import type { NodeFamily, RenderInput } from "../families/family.ts";
import { NODE_INFO } from "../families/node-families.ts";
import { escapeLabelValue } from "../text-format.ts";
import { release } from "./chunk.ts";
import { type RenderBuffers, SEGMENT_LINES_MAX } from "./render-buffers.ts";
import {
  type FamilyRenderer,
  idsOf,
  markInfoChanged,
  nodeLabel,
  type RenderFrame,
  type RenderSource,
} from "./render-frame.ts";
import { createSegment, type LineFormat, rewriteSegment, type Segment } from "./segment.ts";
import { linesPerNode } from "./selection.ts";

/**
 * Creates a renderer of one node family, in segments of a fixed number of nodes. `nodeLabels` are the labels of the
 * info family; if they change, a new renderer is needed.
 */
export function createNodeRenderer(
  family: NodeFamily,
  buffers: RenderBuffers,
  nodeLabels: readonly NodeLabel[],
): FamilyRenderer {
  const perNode = linesPerNode(family);
  const nodesPerSegment = Math.floor(SEGMENT_LINES_MAX / perNode);
  const segments: Segment[] = [];
  const head = `${family.name}{node_id="`;
  const tails = family.splitBy?.values.map((value) => `",${family.splitBy?.label}="${escapeLabelValue(value)}"} `) ?? [
    '"} ',
  ];

  function tailOf(line: number, slot: number, { snapshot }: RenderInput): string {
    if (family !== NODE_INFO) return tails[line % perNode]!;
    const pairs = nodeLabels.map((label) => `",${label}="${escapeLabelValue(nodeLabel(snapshot.fleet, label, slot))}`);
    return `${pairs.join("")}"} `;
  }

  /**
   * Returns which lines of the slots from `start` to before `end` belong to a different series than before, or null if
   * none do.
   */
  function relabeledIn(
    { input, previous, relabeled }: RenderFrame,
    start: number,
    end: number,
  ): LineFormat["isRelabeled"] {
    const { fleet } = input.snapshot;
    const all = relabeled[family.nodeSource];
    const relabeledSlots = all?.subarray(start, end).includes(1) ? all : null;
    const previousFleet = previous?.input.snapshot.fleet ?? fleet;
    const infoChanged =
      family === NODE_INFO && previousFleet !== fleet
        ? markInfoChanged(previousFleet, fleet, nodeLabels, start, end)
        : null;
    if (relabeledSlots === null && infoChanged === null) return null;
    return (line) => {
      const slot = Math.floor(line / perNode);
      return relabeledSlots?.[start + slot] === 1 || infoChanged?.[slot] === 1;
    };
  }

  /** Writes the values of the slots from `start` to before `end`, and NaN after them. */
  function fillValues(shown: RenderSource | null, start: number, end: number, out: Float64Array): void {
    if (shown !== null && end > start) family.fill(shown.input, shown.visibility, start, end, out);
    out.fill(Number.NaN, Math.max(0, end - start) * perNode);
  }

  return {
    *refresh(frame) {
      const { input, previous } = frame;
      if (family.nodeSource === "session_nodes" && frame.sessionsUnchanged && segments.length > 0) return;
      const ids = idsOf(family.nodeSource, frame);
      const previousIds = idsOf(family.nodeSource, previous);
      const count = Math.ceil(ids.length / nodesPerSegment);
      while (segments.length < count) segments.push(createSegment(nodesPerSegment * perNode));
      for (const removed of segments.splice(count)) releaseSegment(removed);
      for (const [index, segment] of segments.entries()) {
        const start = index * nodesPerSegment;
        const end = Math.min(ids.length, start + nodesPerSegment);
        fillValues(frame, start, end, buffers.values);
        // Without lines, the segment may be new, and the previous rendering not have had it.
        const previousEnd = segment.chunk === null ? start : Math.min(previousIds.length, start + nodesPerSegment);
        fillValues(previous, start, previousEnd, buffers.previousValues);
        const seriesText = (line: number) => {
          const slot = start + Math.floor(line / perNode);
          return head + escapeLabelValue(ids[slot]!) + tailOf(line, slot, input);
        };
        const isRelabeled = relabeledIn(frame, start, end);
        rewriteSegment(segment, buffers, { decimals: family.decimals, seriesText, isRelabeled });
        yield;
      }
    },
    chunks: () => segments.flatMap(({ chunk }) => chunk ?? []),
    sampleCount: () => segments.reduce((sum, segment) => sum + segment.series, 0),
    release: () => segments.splice(0).forEach(releaseSegment),
  };
}

function releaseSegment({ chunk }: Segment): void {
  if (chunk !== null) release(chunk);
}
