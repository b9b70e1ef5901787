import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { NodeId } from "../model/node.ts";

/**
 * Tells failures of single nodes from failures of the service, by what other reads bring. A read that succeeds shows that
 * the service answers, so the failures before it were the nodes' own. After several failures in a row without a success
 * the service is suspected: then probes, reads of nodes from all over the fleet, go out one at a time, and each one that
 * fails doubles the wait for the next. After a probe that succeeds, the service is not suspected again for some reads.
 * Where a node is not found, the service has answered: such reads are not counted here.
 */
export interface DetailFailures {
  /** A read succeeded. Returns the nodes whose own the failures since the last success were. */
  recordSuccess(id: NodeId): readonly NodeId[];
  /** A read failed. `mayBeNode`: the failure may be the node's own. */
  recordFailure(id: NodeId, mayBeNode: boolean): void;
  /** A probe failed. */
  recordProbeFailure(): void;
  /** Whether the next read is to be a probe, alone under way. */
  isServiceSuspected(): boolean;
  /** Wait between two reads where `spacing` is planned: longer the more probes failed in a row. */
  probeSpacingMs(spacing: DurationMs): DurationMs;
}

/** So many failures in a row lead to a probe. */
const FAILURES_BEFORE_PROBE = 4;
/** Probes of a service that is down are no farther apart, unless the plan says so: it must be seen to be back. */
const SPACING_MS_MAX: DurationMs = 5 * MINUTE_MS;
const DOUBLINGS_MAX = 20;
/** Reads after a successful probe in which failures are taken for the nodes' own: most nodes may be bad. */
const READS_AFTER_PROBE = 60;

/** No failure is known yet. */
export function createDetailFailures(): DetailFailures {
  // At most the reads after a probe, and those under way when the service came under suspicion.
  const undecided = new Set<NodeId>();
  let failuresInRow = 0;
  let failedProbes = 0;
  let trusted = 0;
  const isSuspected = () => failuresInRow >= FAILURES_BEFORE_PROBE;
  return {
    recordSuccess(id) {
      trusted = isSuspected() ? READS_AFTER_PROBE : Math.max(0, trusted - 1);
      undecided.delete(id);
      const decide = [...undecided];
      undecided.clear();
      failuresInRow = 0;
      failedProbes = 0;
      return decide;
    },
    recordFailure(id, mayBeNode) {
      if (trusted === 0) failuresInRow++;
      else trusted--;
      if (mayBeNode) undecided.add(id);
    },
    recordProbeFailure() {
      failedProbes = Math.min(DOUBLINGS_MAX, failedProbes + 1);
    },
    isServiceSuspected: isSuspected,
    probeSpacingMs: (spacing) => Math.max(spacing, Math.min(SPACING_MS_MAX, spacing * 2 ** failedProbes)),
  };
}
