import type { DurationMs } from "../../base/duration.ts";
import { type EpochMs, isoAt } from "../../model/time.ts";

/** Returns whether a value is known. Columns hold NaN for unknown values. */
export const isKnown = (value: number | null | undefined): value is number =>
  value !== null && value !== undefined && !Number.isNaN(value);

/** Returns seconds, to the millisecond. */
export const secondsOf = (ms: DurationMs): number => Math.round(ms) / 1_000;

/** Returns seconds, to the millisecond, or null if unknown. */
export const seconds = (ms: DurationMs | null | undefined): number | null => (isKnown(ms) ? secondsOf(ms) : null);

/** Returns a time as ISO 8601 in UTC, or null if unknown. */
export const iso = (at: EpochMs | null | undefined): string | null => (isKnown(at) ? isoAt(at) : null);

/** Returns the named properties of an object: those that are shown unchanged, and under the same name, in JSON. */
export const pick = <T, Name extends keyof T>(value: T, ...names: readonly Name[]): Pick<T, Name> =>
  Object.fromEntries(names.map((name) => [name, value[name]])) as Pick<T, Name>;
