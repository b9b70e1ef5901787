import type { NumberColumn } from "../../base/number-column.ts";
import type { Steps } from "../../base/steps.ts";
import type { Fleet } from "../../model/snapshot.ts";
import {
  type AggregateFamily,
  isFresh,
  type NodeFamily,
  type RenderInput,
  type Visibility,
} from "../families/family.ts";
import { NETWORK_FAMILIES } from "../families/network-families.ts";
import { type Format, familyHeader } from "../text-format.ts";
import { createAggregateRenderer } from "./aggregate-lines.ts";
import { type Chunk, type FamilyRenderer, type RenderSource, storedChunk } from "./chunk.ts";
import { LineWriter } from "./line-writer.ts";
import { NodeLabels } from "./node-labels.ts";
import { NodeFamilyRenderer } from "./node-lines.ts";

/** The `proxynet_*` families of one snapshot. */
export interface NetworkExposition {
  /** Number of samples. */
  readonly series: number;
  /** Names of the families dropped because of `export.series_max`. */
  readonly droppedFamilies: readonly string[];
  /** What the chunks are rendered from, or null if there are none. */
  readonly source: RenderSource | null;
  /** The lines, in order. Both formats share the chunks of sample lines; the header lines differ. */
  readonly chunks: Readonly<Record<Format, readonly Chunk[]>>;
}

/** The exposition while no snapshot is published: at the start, after it was cleared, and after a failed publication. */
export const EMPTY_NETWORK_EXPOSITION: NetworkExposition = {
  series: 0,
  droppedFamilies: [],
  source: null,
  chunks: { text: [], openmetrics: [] },
};

type Family = NodeFamily | AggregateFamily;

/** Prepares the exposition of snapshots. Chunks whose lines did not change are those of the previous exposition. */
export class NetworkRenderer {
  readonly #headers = new Map(NETWORK_FAMILIES.map((family) => [family, headerChunks(family)]));
  readonly #labels = new NodeLabels();
  readonly #writer = new LineWriter();
  #familyRenderers = new Map<Family, FamilyRenderer>();
  #previous: RenderSource | null = null;

  /**
   * Prepares a snapshot in short steps, which take about a millisecond each for a hundred thousand nodes, so that the
   * caller can do other work in between. Run the generator to its end before the next refresh. Earlier expositions stay
   * valid. A renderer that threw must not be used again.
   */
  *refresh(input: RenderInput): Steps<NetworkExposition> {
    const source = { input, visibility: computeVisibility(input) };
    const { deny, seriesMax } = input.options;
    yield;
    yield* this.#labels.update(input);
    // Renderers of families that are denied now are dropped.
    const exported = NETWORK_FAMILIES.filter(({ name }) => !deny.has(name));
    this.#familyRenderers = new Map(exported.map((family) => [family, this.#rendererOf(family)]));
    for (const familyRenderer of this.#familyRenderers.values()) yield* familyRenderer.refresh(source, this.#previous);
    this.#previous = source;
    return this.#assemble(source, seriesMax);
  }

  /** Returns the renderer of the last refresh, or a new one if there is none. */
  #rendererOf(family: Family): FamilyRenderer {
    const known = this.#familyRenderers.get(family);
    if (known !== undefined) return known;
    if (!("fill" in family)) return createAggregateRenderer(family);
    return new NodeFamilyRenderer(family, this.#labels.of(family), this.#writer);
  }

  /** Drops the largest families while there are more than `seriesMax` samples. */
  #assemble(source: RenderSource, seriesMax: number): NetworkExposition {
    const sampleCounts = new Map(
      [...this.#familyRenderers].map(([family, renderer]) => [family, renderer.sampleCount()]),
    );
    let series = [...sampleCounts.values()].reduce((sum, count) => sum + count, 0);
    const droppedFamilies: string[] = [];
    for (const [family, count] of [...sampleCounts].sort(([, a], [, b]) => b - a)) {
      if (series <= seriesMax) break;
      series -= count;
      sampleCounts.delete(family);
      droppedFamilies.push(family.name);
    }
    const chunksOf = (format: Format) =>
      [...sampleCounts].flatMap(([family, count]) =>
        count === 0 ? [] : [this.#headers.get(family)![format], ...this.#familyRenderers.get(family)!.chunks()],
      );
    return {
      series,
      droppedFamilies,
      source,
      chunks: { text: chunksOf("text"), openmetrics: chunksOf("openmetrics") },
    };
  }
}

const headerChunks = (family: Family): Readonly<Record<Format, Chunk>> => ({
  text: storedChunk(Buffer.from(familyHeader(family, "text"))),
  openmetrics: storedChunk(Buffer.from(familyHeader(family, "openmetrics"))),
});

/** Returns which slots are shown. */
export function computeVisibility(input: RenderInput): Visibility {
  const { fleet, sessions } = input.snapshot;
  const sessionCounters = new Uint8Array(sessions?.nodes.slots ?? 0);
  for (let slot = 0; slot < sessionCounters.length; slot++) {
    if (sessions!.nodes.ids[slot] !== "") sessionCounters[slot] = 1;
  }
  const areFresh = sessions !== null && isFresh(input, "sessions", sessions.settledAt);
  return {
    nodes: freshSlots(fleet, fleet.listedAt, input.now - input.staleAfterMs.nodes),
    details: freshSlots(fleet, fleet.detailedAt, input.now - input.staleAfterMs.details),
    sessions: areFresh ? sessionCounters : new Uint8Array(sessionCounters.length),
    sessionCounters,
  };
}

function freshSlots({ slots }: Fleet, observedAt: NumberColumn, since: number): Uint8Array {
  const fresh = new Uint8Array(slots);
  // Empty slots have no time.
  observedAt.markAtLeast(since, fresh);
  return fresh;
}
