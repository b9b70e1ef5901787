import type { AggregateFamily, NodeFamily, RenderInput } from "../families/family.ts";
import { NETWORK_FAMILIES } from "../families/network-families.ts";
import { NODE_INFO } from "../families/node-families.ts";
import { type Format, familyHeader } from "../text-format.ts";
import { createAggregateRenderer } from "./aggregate-lines.ts";
import { type Chunk, createChunk, releaseAll, retainAll } from "./chunk.ts";
import { NodeFamilyRenderer } from "./node-lines.ts";
import { createRenderBuffers } from "./render-buffers.ts";
import { createFrame, type FamilyRenderer, type RenderFrame, type RenderSource } from "./render-frame.ts";
import { selectFamilies } from "./selection.ts";

/** The rendered `proxynet_*` families of one snapshot. */
export interface NetworkExposition {
  /** Number of samples. */
  readonly series: number;
  /** Names of the families dropped because of `export.series_max`. */
  readonly droppedFamilies: readonly string[];
  /** The bytes, in order. Both formats share the chunks of sample lines; the header lines differ. */
  readonly chunks: Readonly<Record<Format, readonly Chunk[]>>;
}

/** The exposition before the first snapshot. */
export const EMPTY_NETWORK_EXPOSITION: NetworkExposition = {
  series: 0,
  droppedFamilies: [],
  chunks: { text: [], openmetrics: [] },
};

/** Renders snapshots, each from the changes since the previous one. */
export interface NetworkRenderer {
  /**
   * Renders a snapshot in short steps, which take about a millisecond each for a hundred thousand nodes, so that the
   * caller can do other work in between. Run the generator to its end before the next one. The exposition is retained
   * once, for the caller. Bytes of earlier expositions that are still retained are not overwritten. A renderer that
   * threw must not be used again.
   */
  refresh(input: RenderInput): Generator<void, NetworkExposition>;
}

type Family = NodeFamily | AggregateFamily;

/** Creates a renderer. */
export function createNetworkRenderer(): NetworkRenderer {
  const buffers = createRenderBuffers();
  const headers = new Map(NETWORK_FAMILIES.map((family) => [family, headerChunks(family)]));
  const familyRenderers = new Map<Family, FamilyRenderer>();
  let previous: RenderSource | null = null;

  /**
   * Drops the renderers of families that are no longer exported, and the renderer of the node info if its labels
   * changed.
   */
  function dropUnusedRenderers(wanted: readonly Family[], frame: RenderFrame): void {
    const isRelabeled = frame.previous?.input.options.nodeLabels.join() !== frame.input.options.nodeLabels.join();
    for (const [family, familyRenderer] of familyRenderers) {
      if (wanted.includes(family) && !(family === NODE_INFO && isRelabeled)) continue;
      familyRenderer.release();
      familyRenderers.delete(family);
    }
  }

  function rendererOf(family: Family, { options }: RenderInput): FamilyRenderer {
    const familyRenderer =
      familyRenderers.get(family) ??
      ("fill" in family
        ? new NodeFamilyRenderer(family, buffers, options.nodeLabels)
        : createAggregateRenderer(family));
    familyRenderers.set(family, familyRenderer);
    return familyRenderer;
  }

  function assemble(families: readonly Family[], dropped: readonly string[]): NetworkExposition {
    const shown = families.filter((family) => familyRenderers.get(family)!.sampleCount() > 0);
    const chunksOf = (format: Format) =>
      shown.flatMap((family) => [headers.get(family)![format], ...familyRenderers.get(family)!.chunks()]);
    const exposition = {
      series: shown.reduce((sum, family) => sum + familyRenderers.get(family)!.sampleCount(), 0),
      droppedFamilies: dropped,
      chunks: { text: chunksOf("text"), openmetrics: chunksOf("openmetrics") },
    };
    retainExposition(exposition);
    return exposition;
  }

  return {
    *refresh(input) {
      const frame = yield* createFrame(input, previous);
      previous = { input, visibility: frame.visibility };
      const { families, dropped } = yield* selectFamilies(input, frame.visibility, (family) =>
        frame.sessionsUnchanged && family.nodeSource === "session_nodes"
          ? (familyRenderers.get(family)?.sampleCount() ?? null)
          : null,
      );
      dropUnusedRenderers(families, frame);
      for (const family of families) yield* rendererOf(family, input).refresh(frame);
      return assemble(families, dropped);
    },
  };
}

const headerChunks = (family: Family): Readonly<Record<Format, Chunk>> => ({
  text: createChunk(Buffer.from(familyHeader(family, "text"))),
  openmetrics: createChunk(Buffer.from(familyHeader(family, "openmetrics"))),
});

/** Retains both formats. */
function retainExposition({ chunks }: NetworkExposition): void {
  retainAll(chunks.text);
  retainAll(chunks.openmetrics);
}

/** Releases both formats. Call it once for every {@link retainExposition}. */
export function releaseExposition({ chunks }: NetworkExposition): void {
  releaseAll(chunks.text);
  releaseAll(chunks.openmetrics);
}
