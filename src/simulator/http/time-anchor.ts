import type { Clock } from "../../model/ports.ts";
import type { EpochMs } from "../../model/time.ts";

/** Where the time of a service stood when a clock first drove it. */
export type ClockAnchors = WeakMap<Clock, number>;

/**
 * The service's own time, driven by `clock`: it follows the monotonic time, so that when the client's wall clock jumps
 * the service's does not. Every shell that serves the same service on the same clock shows the same time.
 */
export function serviceTime(anchors: ClockAnchors, clock: Clock): () => EpochMs {
  const offset = anchors.get(clock) ?? clock.now() - clock.monotonic();
  anchors.set(clock, offset);
  return () => Math.floor(offset + clock.monotonic());
}
