import type { DurationMs } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";

/** Whether a number is there at all: columns write NaN where nothing is known. */
export const isKnown = (value: number | null | undefined): value is number =>
  value !== null && value !== undefined && !Number.isNaN(value);

/** Seconds, to the millisecond; null where nothing is known. */
export const seconds = (ms: DurationMs | null | undefined): number | null =>
  isKnown(ms) ? Math.round(ms) / 1_000 : null;

/** An instant as ISO 8601 in UTC; null where nothing is known. */
export const iso = (at: EpochMs | null | undefined): string | null => (isKnown(at) ? isoAt(at) : null);

/** An instant that is known, as ISO 8601 in UTC. */
export const isoAt = (at: EpochMs): string => new Date(at).toISOString();
