import { byName } from "../base/by-name.ts";
import type { NodeDetail, NodeId } from "../model/node.ts";
import { USAGES } from "../model/policy/policy.ts";
import type { UsageReading } from "../scheduling/usage-trend.ts";

/** Scale of the usages that the service reports, which the spec does not define. `null` means that none is declared. */
export type UsageScale = "ratio" | "percent" | null;

/** A usage above this is not a ratio. */
export const RATIO_MAX = 1.5;
/**
 * If this many different nodes in a row have percentages below {@link RATIO_MAX}, the usages are ratios. Fewer nodes
 * may be idle.
 */
const LOW_NODES_MAX = 20;
const UNKNOWN_USAGE = byName(USAGES, () => Number.NaN);

/** Creates a check of the usages of details against the declared scale, which is `initial` at first. */
export function createUsageScaleCheck(initial: UsageScale) {
  let scale = initial;
  /** Whether a usage was too large for the scale. */
  let isContradicted = false;
  const lowNodes = new Set<NodeId>();

  /** Whether a scale is declared and nothing contradicts it. */
  const isKnown = (): boolean => scale !== null && !isContradicted && lowNodes.size < LOW_NODES_MAX;
  const unitOf = (declared: UsageScale): number => (declared === "percent" ? 100 : 1);

  function check(detail: NodeDetail): void {
    const isAnyAbove = (limit: number) => USAGES.some((usage) => (detail[usage] ?? 0) > limit);
    isContradicted ||= scale !== null && isAnyAbove(RATIO_MAX * unitOf(scale));
    if (scale !== "percent") return;
    // A CPU may be idle, and a zero may mean that nothing was measured; memory and disk are always in use.
    const isStated = (detail.memoryUsage ?? 0) > 0 || (detail.diskUsage ?? 0) > 0;
    if (isAnyAbove(RATIO_MAX)) lowNodes.clear();
    else if (isStated && lowNodes.size < LOW_NODES_MAX) lowNodes.add(detail.id);
  }

  return {
    isKnown,
    /** Checks a detail and returns its usages as ratios. A usage that is missing, or whose scale is unknown, is NaN. */
    normalize(detail: NodeDetail): UsageReading {
      check(detail);
      if (!isKnown()) return UNKNOWN_USAGE;
      const unit = unitOf(scale);
      return byName(USAGES, (usage) => (detail[usage] === null ? Number.NaN : detail[usage] / unit));
    },
    /** Declares a scale. Returns whether it changed. */
    declare(declared: UsageScale): boolean {
      if (declared === scale) return false;
      scale = declared;
      isContradicted = false;
      lowNodes.clear();
      return true;
    },
  };
}
