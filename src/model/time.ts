/** Milliseconds since the Unix epoch. On whose clock (ours, the service's) is said where it is used. */
export type EpochMs = number;

/** Milliseconds of a clock that never jumps. Only differences mean something, and only within one process. */
export type MonotonicMs = number;
