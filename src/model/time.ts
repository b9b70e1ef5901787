/** Milliseconds since the Unix epoch, on the daemon's or the service's clock, as documented where it is used. */
export type EpochMs = number;

/** Milliseconds of a clock that never jumps. Only differences within one process are meaningful. */
export type MonotonicMs = number;

/** Formats a time to the second, in UTC, for texts: `2026-11-21 03:12:44 UTC`. */
export const formatTime = (at: EpochMs): string => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
