/** Milliseconds since the Unix epoch, on the daemon's or the service's clock, as documented where it is used. */
export type EpochMs = number;

/** Milliseconds of a clock that never jumps. Only differences within one process are meaningful. */
export type MonotonicMs = number;

/** Formats a time as ISO 8601 in UTC, with milliseconds. */
export const isoAt = (at: EpochMs): string => new Date(at).toISOString();

/** Formats a time for messages, in UTC and without milliseconds: `2026-11-21 03:12:44 UTC`. */
export const formatTime = (at: EpochMs): string => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/**
 * Parses a text that begins with a date and T, `YYYY-MM-DDT`, as `Date.parse` does. Returns NaN if it is invalid or the
 * month does not have that day. (`Date.parse` reads 30 February as 1 or 2 March.)
 */
export function parseIsoTime(iso: string): EpochMs {
  const day = Number(iso.slice(8, 10));
  // Every month has at least 28 days, so most texts don't need the slower check.
  const isDay = day <= 28 || new Date(iso.slice(0, 10)).getUTCDate() === day;
  return isDay ? Date.parse(iso) : Number.NaN;
}
