import type { Clock } from "../../model/ports.ts";
import type { EpochMs } from "../../model/time.ts";

/** Offset of a service's time to the monotonic time of each clock that drives it. */
export type ClockAnchors = WeakMap<Clock, number>;

/**
 * Returns the service's time, driven by the monotonic time of `clock`, so that a step of the client's wall clock does not
 * change it. All servers and transports of a service on the same clock share the time.
 */
export function serviceTime(anchors: ClockAnchors, clock: Clock): () => EpochMs {
  const offset = anchors.get(clock) ?? clock.now() - clock.monotonic();
  anchors.set(clock, offset);
  return () => Math.floor(offset + clock.monotonic());
}
