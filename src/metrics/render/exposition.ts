import { hold, type Piece, release } from "./chunk.ts";
import type { Format } from "../text-format.ts";

/** The `proxynet_*` families of one snapshot, finished: what /metrics shows but for the daemon's own. */
export interface Exposition {
  /** Samples on it. */
  readonly series: number;
  /** Names of the families left out for `export.series_max`. */
  readonly dropped: readonly string[];
  /** The bytes in order. Sample lines are the same pieces in both formats; header lines differ. */
  readonly pieces: Readonly<Record<Format, readonly Piece[]>>;
}

/** Before the first snapshot. */
export const EMPTY_EXPOSITION: Exposition = { series: 0, dropped: [], pieces: { text: [], openmetrics: [] } };

/** Keeps the bytes from being written to. */
export function holdAll(pieces: readonly Piece[]): void {
  for (const piece of pieces) hold(piece);
}

/** Gives the bytes back, once for every {@link holdAll}. */
export function releaseAll(pieces: readonly Piece[]): void {
  for (const piece of pieces) release(piece);
}

/** Keeps the whole exposition, in both formats. */
export function holdExposition({ pieces }: Exposition): void {
  holdAll(pieces.text);
  holdAll(pieces.openmetrics);
}

/** Gives it back, once for every {@link holdExposition}. */
export function releaseExposition({ pieces }: Exposition): void {
  releaseAll(pieces.text);
  releaseAll(pieces.openmetrics);
}
