import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { NodeId } from "../model/node.ts";

/** Number of failures in a row after which the service is suspected. */
const FAILURES_BEFORE_PROBE = 4;
/**
 * Maximum time between two probes, unless reads are planned further apart, so that a recovery of the service is
 * noticed.
 */
const SPACING_MS_MAX: DurationMs = 5 * MINUTE_MS;
const DOUBLINGS_MAX = 20;
/**
 * Number of reads after a successful probe during which failures do not count against the service, since most nodes may
 * be faulty.
 */
const READS_AFTER_PROBE = 60;

/** The failures of detail reads. */
export type DetailFailures = ReturnType<typeof createDetailFailures>;

/**
 * Distinguishes failures of single nodes from failures of the service by the results of other reads. A read that
 * succeeds shows that the service works, so the failures before it were caused by the nodes. After several failures in
 * a row the service is suspected. Then probes, which are reads of nodes from all over the fleet, are sent one at a
 * time, and each failed probe doubles the wait for the next. After a probe succeeds, the service is not suspected again
 * for some reads. A node that is not found is not a failure, since the service answered.
 */
export function createDetailFailures() {
  // This is bounded by the reads after a probe and those in flight when the service became suspect.
  const unattributed = new Set<NodeId>();
  let failuresInRow = 0;
  let failedProbes = 0;
  let toleratedReads = 0;
  const isSuspected = () => failuresInRow >= FAILURES_BEFORE_PROBE;
  return {
    /** Records a successful read. Returns the nodes that caused the failures since the last success. */
    recordSuccess(id: NodeId): readonly NodeId[] {
      toleratedReads = isSuspected() ? READS_AFTER_PROBE : Math.max(0, toleratedReads - 1);
      unattributed.delete(id);
      const failedNodes = [...unattributed];
      unattributed.clear();
      failuresInRow = 0;
      failedProbes = 0;
      return failedNodes;
    },
    /** Records a failed read. `mayBeNode` says whether the node may have caused it. */
    recordFailure(id: NodeId, mayBeNode: boolean): void {
      if (toleratedReads === 0) failuresInRow++;
      else toleratedReads--;
      if (mayBeNode) unattributed.add(id);
    },
    recordProbeFailure(): void {
      failedProbes = Math.min(DOUBLINGS_MAX, failedProbes + 1);
    },
    /** Returns whether the next read must be a probe, with no other read in flight. */
    isServiceSuspected: isSuspected,
    /**
     * Returns the time between two probes, which is `spacingMs`, the planned time between reads, doubled for each probe
     * that failed in a row.
     */
    probeSpacingMs: (spacingMs: DurationMs): DurationMs =>
      Math.max(spacingMs, Math.min(SPACING_MS_MAX, spacingMs * 2 ** failedProbes)),
  };
}
