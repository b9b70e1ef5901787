/** Milliseconds since the Unix epoch, on the daemon's or the service's clock, as documented where it is used. */
export type EpochMs = number;

/** Milliseconds of a clock that never jumps. Only differences within one process are meaningful. */
export type MonotonicMs = number;
