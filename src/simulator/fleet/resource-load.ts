import type { DurationMs } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";

/** What a strain takes: a part of {@link ResourceUsage}. */
export type Resource = "cpu" | "memory" | "disk";

/**
 * A load that takes a node's resource while the node is well otherwise: it responds and its sessions go on, so that
 * nothing but its detail shows it.
 */
export interface ResourceLoad {
  readonly resource: Resource;
  /** Begins to rise then. It may lie in the past. */
  readonly since: EpochMs;
  /** From the healthy level to `level`, evenly; 0: a jump. */
  readonly overMs: DurationMs;
  /** 0 to 1. */
  readonly level: number;
  /** All is as before from then on; Infinity: never. */
  readonly until: EpochMs;
}

/** What a strain makes of a healthy level, by the report of `at`. */
export function loadedUsage(load: ResourceLoad | null, resource: Resource, at: EpochMs, healthy: number): number {
  if (load === null || load.resource !== resource || at < load.since || at >= load.until) return healthy;
  const risen = load.overMs === 0 ? 1 : Math.min(1, (at - load.since) / load.overMs);
  return healthy + (load.level - healthy) * risen;
}
