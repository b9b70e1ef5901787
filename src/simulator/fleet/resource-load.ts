import type { DurationMs } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";

/** A resource of {@link ResourceUsage}. */
export type Resource = "cpu" | "memory" | "disk";

/**
 * A load on one resource of an otherwise healthy node. Only the node's detail shows it, because sessions are not
 * affected.
 */
export interface ResourceLoad {
  readonly resource: Resource;
  /** Start of the rise, which may be in the past. */
  readonly since: EpochMs;
  /** Duration of the linear rise from the healthy usage to `level`, or 0 for a jump. */
  readonly overMs: DurationMs;
  /** 0 to 1. */
  readonly level: number;
  /** End of the load; Infinity if it never ends. */
  readonly until: EpochMs;
}

/** Returns the usage of a resource under a load, as reported at `at`. */
export function loadedUsage(load: ResourceLoad | null, resource: Resource, at: EpochMs, healthy: number): number {
  if (load === null || load.resource !== resource || at < load.since || at >= load.until) return healthy;
  const risen = load.overMs === 0 ? 1 : Math.min(1, (at - load.since) / load.overMs);
  return healthy + (load.level - healthy) * risen;
}
