import type { Fleet } from "../../model/snapshot.ts";
import { createAggregateRun } from "./aggregate-lines.ts";
import { type Exposition, holdExposition } from "./exposition.ts";
import { FAMILIES } from "../families/network-families.ts";
import type { AggregateFamily, NodeFamily, RenderInput } from "../families/family.ts";
import { NODE_INFO } from "../families/node-families.ts";
import { createNodeRun } from "./node-lines.ts";
import { createPiece, type Piece } from "./chunk.ts";
import { markRelabelled, seePresence } from "./node-visibility.ts";
import type { Frame, Run } from "./render-pass.ts";
import { selectFamilies } from "./selection.ts";
import { type Format, familyHeader } from "../text-format.ts";
import { createWorkbench } from "./render-buffers.ts";

/** Renders snapshots, each from what changed since the one before. */
export interface Renderer {
  /**
   * Renders a snapshot. Steps are short, a millisecond or so for a hundred thousand nodes, so that the caller may do
   * other work in between; run it to its end, one at a time. The exposition is held once, for the caller; bytes of an
   * earlier one that is still held are not touched, those of one that was released are written over. A renderer that
   * threw is not to be used again.
   */
  refresh(input: RenderInput): Generator<void, Exposition>;
}

type Family = NodeFamily | AggregateFamily;

/** A renderer that has seen nothing yet. */
export function createRenderer(): Renderer {
  const bench = createWorkbench();
  const headers = new Map(FAMILIES.map((family) => [family, headersOf(family)]));
  const runs = new Map<Family, Run>();
  let fleet: Fleet | null = null;
  let sessionIds: readonly string[] = [];
  let infoLabels = "";

  function* frameOf(input: RenderInput): Generator<void, Frame> {
    const { snapshot } = input;
    const ids = snapshot.sessions?.nodes.ids ?? [];
    const relabelled = {
      fleet: markRelabelled(fleet?.ids ?? [], snapshot.fleet.ids),
      session_nodes: markRelabelled(sessionIds, ids),
    };
    yield;
    const frame = { input, presence: seePresence(input), relabelled, fleetBefore: fleet };
    fleet = snapshot.fleet;
    sessionIds = ids;
    yield;
    return frame;
  }

  /** Forgets the runs that are not wanted any more, or not as they are. */
  function dropRuns(wanted: readonly Family[], { options }: RenderInput): void {
    const labels = options.nodeLabels.join();
    for (const [family, run] of runs) {
      const stays = wanted.includes(family) && (family !== NODE_INFO || labels === infoLabels);
      if (stays) continue;
      run.drop();
      runs.delete(family);
    }
    infoLabels = labels;
  }

  function runOf(family: Family, { options }: RenderInput): Run {
    const run =
      runs.get(family) ??
      ("fill" in family ? createNodeRun(family, bench, options.nodeLabels) : createAggregateRun(family));
    runs.set(family, run);
    return run;
  }

  function assemble(families: readonly Family[], dropped: readonly string[]): Exposition {
    const shown = families.filter((family) => runs.get(family)!.series() > 0);
    const piecesIn = (format: Format) =>
      shown.flatMap((family) => [headers.get(family)![format], ...runs.get(family)!.pieces()]);
    const exposition = {
      series: shown.reduce((sum, family) => sum + runs.get(family)!.series(), 0),
      dropped,
      pieces: { text: piecesIn("text"), openmetrics: piecesIn("openmetrics") },
    };
    holdExposition(exposition);
    return exposition;
  }

  return {
    *refresh(input) {
      const frame = yield* frameOf(input);
      const { families, dropped } = yield* selectFamilies(input, frame.presence);
      dropRuns(families, input);
      for (const family of families) yield* runOf(family, input).refresh(frame);
      return assemble(families, dropped);
    },
  };
}

const headersOf = (family: Family): Readonly<Record<Format, Piece>> => ({
  text: createPiece(Buffer.from(familyHeader(family, "text"))),
  openmetrics: createPiece(Buffer.from(familyHeader(family, "openmetrics"))),
});
