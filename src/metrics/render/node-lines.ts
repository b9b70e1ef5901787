import type { NodeLabel } from "../../model/node-labels.ts";
import type { NodeFamily, RenderInput } from "../families/family.ts";
import { NODE_INFO } from "../families/node-families.ts";
import { release } from "./chunk.ts";
import { markDescribedAnew, nodeLabel } from "./node-visibility.ts";
import type { Frame, Run } from "./render-pass.ts";
import { createSegment, type Relabelled, rewrite, type Segment } from "./segment.ts";
import { linesPerNode } from "./selection.ts";
import { escapeLabelValue } from "../text-format.ts";
import { SEGMENT_LINES_MAX, type Workbench } from "./render-buffers.ts";

/**
 * The lines of one node family, in segments of as many nodes as fill one. `nodeLabels` are those of the info family; a
 * change of them needs a new run.
 */
export function createNodeRun(family: NodeFamily, bench: Workbench, nodeLabels: readonly NodeLabel[]): Run {
  const perNode = linesPerNode(family);
  const nodesPerSegment = Math.floor(SEGMENT_LINES_MAX / perNode);
  const segments: Segment[] = [];
  const head = `${family.name}{node_id="`;
  const tails = family.split?.values.map((value) => `",${family.split?.label}="${escapeLabelValue(value)}"} `) ?? [
    '"} ',
  ];

  function tailOf(line: number, slot: number, { snapshot }: RenderInput): string {
    if (family !== NODE_INFO) return tails[line % perNode]!;
    const pairs = nodeLabels.map((label) => `",${label}="${escapeLabelValue(nodeLabel(snapshot.fleet, label, slot))}`);
    return `${pairs.join("")}"} `;
  }

  /** Which lines of the segment that begins at slot `start` speak of another series; null: none. */
  function relabelledIn({ input, relabelled, fleetBefore }: Frame, start: number, end: number): Relabelled | null {
    const { fleet } = input.snapshot;
    const all = relabelled[family.roster];
    const marks = all?.subarray(start, end).includes(1) ? all : null;
    const described =
      family === NODE_INFO && fleetBefore !== null && fleetBefore !== fleet
        ? markDescribedAnew(fleetBefore, fleet, nodeLabels, start, end)
        : null;
    if (marks === null && described === null) return null;
    return (line) => {
      const slot = Math.floor(line / perNode);
      return marks?.[start + slot] === 1 || described?.[slot] === 1;
    };
  }

  return {
    *refresh(frame) {
      const { input, presence } = frame;
      const ids = family.roster === "fleet" ? input.snapshot.fleet.ids : (input.snapshot.sessions?.nodes.ids ?? []);
      const count = Math.ceil(ids.length / nodesPerSegment);
      while (segments.length < count) segments.push(createSegment(nodesPerSegment * perNode));
      for (const gone of segments.splice(count)) dropSegment(gone);
      for (const [index, segment] of segments.entries()) {
        const start = index * nodesPerSegment;
        const end = Math.min(ids.length, start + nodesPerSegment);
        family.fill(input, presence, start, end, bench.values);
        bench.values.fill(Number.NaN, (end - start) * perNode);
        const seriesText = (line: number) => {
          const slot = start + Math.floor(line / perNode);
          return head + escapeLabelValue(ids[slot]!) + tailOf(line, slot, input);
        };
        rewrite(segment, bench, seriesText, relabelledIn(frame, start, end));
        yield;
      }
    },
    pieces: () => segments.flatMap(({ piece }) => piece ?? []),
    series: () => segments.reduce((sum, segment) => sum + segment.series, 0),
    drop: () => segments.splice(0).forEach(dropSegment),
  };
}

function dropSegment({ piece }: Segment): void {
  if (piece !== null) release(piece);
}
