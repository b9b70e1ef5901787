import type { Format } from "../text-format.ts";
import { type Chunk, release, retain } from "./chunk.ts";

/** The rendered `proxynet_*` families of one snapshot. */
export interface NetworkExposition {
  /** Number of samples. */
  readonly series: number;
  /** Names of the families dropped because of `export.series_max`. */
  readonly droppedFamilies: readonly string[];
  /** The bytes in order. Both formats share the chunks of sample lines; header lines differ. */
  readonly chunks: Readonly<Record<Format, readonly Chunk[]>>;
}

/** The exposition before the first snapshot. */
export const EMPTY_NETWORK_EXPOSITION: NetworkExposition = {
  series: 0,
  droppedFamilies: [],
  chunks: { text: [], openmetrics: [] },
};

/** Prevents the bytes from being overwritten. */
export function retainAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) retain(chunk);
}

/** Releases the bytes; call it once for every {@link retainAll}. */
export function releaseAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) release(chunk);
}

/** Retains both formats. */
export function retainExposition({ chunks }: NetworkExposition): void {
  retainAll(chunks.text);
  retainAll(chunks.openmetrics);
}

/** Releases both formats; call it once for every {@link retainExposition}. */
export function releaseExposition({ chunks }: NetworkExposition): void {
  releaseAll(chunks.text);
  releaseAll(chunks.openmetrics);
}
