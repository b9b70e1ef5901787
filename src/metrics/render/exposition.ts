import type { Format } from "../text-format.ts";
import { type Chunk, release, retain } from "./chunk.ts";

/** The `proxynet_*` families of one snapshot, finished: what /metrics shows but for the daemon's own. */
export interface NetworkExposition {
  /** Samples on it. */
  readonly series: number;
  /** Names of the families left out for `export.series_max`. */
  readonly droppedFamilies: readonly string[];
  /** The bytes in order. Sample lines are the same pieces in both formats; header lines differ. */
  readonly chunks: Readonly<Record<Format, readonly Chunk[]>>;
}

/** Before the first snapshot. */
export const EMPTY_NETWORK_EXPOSITION: NetworkExposition = {
  series: 0,
  droppedFamilies: [],
  chunks: { text: [], openmetrics: [] },
};

/** Keeps the bytes from being written to. */
export function retainAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) retain(chunk);
}

/** Gives the bytes back, once for every {@link retainAll}. */
export function releaseAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) release(chunk);
}

/** Keeps the whole exposition, in both formats. */
export function retainExposition({ chunks }: NetworkExposition): void {
  retainAll(chunks.text);
  retainAll(chunks.openmetrics);
}

/** Gives it back, once for every {@link retainExposition}. */
export function releaseExposition({ chunks }: NetworkExposition): void {
  releaseAll(chunks.text);
  releaseAll(chunks.openmetrics);
}
