import type { EpochMs } from "../../../../src/model/time.ts";
import type { FailureMode, Remedy } from "../../../../src/simulator/fleet/failures.ts";
import type { PostAttempt, SimulationParts } from "../../daemon/simulation-parts.ts";

/** An actual failure of a simulated node. Times are on the service's clock. */
export interface NodeFailure {
  readonly node: string;
  readonly failureMode: FailureMode;
  readonly remedy: Remedy;
  readonly from: EpochMs;
  /** When the node went offline, or null if it did not. */
  offlineAt: EpochMs | null;
  /** Null if it has not ended yet. */
  until: EpochMs | null;
  endedBy: "itself" | "operator" | "daemon" | null;
  /** The first policy that fired on the failure. */
  firstFiring: { readonly policy: string; readonly at: EpochMs } | null;
  readonly posts: EpochMs[];
}

/** The failures of a fleet. Call `observe` at every step. */
export interface FailureLog {
  observe(): void;
  recordFiring(policy: string, node: string): void;
  recordPost(post: PostAttempt): void;
  readonly failures: readonly NodeFailure[];
  /** Number of timers that started firing after the node had recovered. */
  lateFirings(): number;
}

interface OpenFailure {
  readonly failure: NodeFailure;
  /** When the failure would end without an action. */
  readonly recoverAt: EpochMs;
}

/** Creates an empty log. */
export function createFailureLog(parts: SimulationParts): FailureLog {
  const { nodes } = parts.service.network.fleet;
  const openFailures = new Map<string, OpenFailure>();
  const failures: NodeFailure[] = [];
  let lateFirings = 0;

  function endFailure({ failure, recoverAt }: OpenFailure, now: EpochMs): void {
    failure.until = Math.min(now, recoverAt);
    failure.endedBy = recoverAt > now ? "daemon" : failure.remedy === "time" ? "itself" : "operator";
    openFailures.delete(failure.node);
  }

  return {
    observe() {
      const now = parts.serviceNow();
      for (const node of nodes) {
        const open = openFailures.get(node.id);
        if (open !== undefined && (node.failureMode === "none" || node.recoverAt !== open.recoverAt)) {
          endFailure(open, now);
        } else if (open !== undefined && node.isUnresponsive) open.failure.offlineAt ??= now;
        if (node.failureMode === "none" || openFailures.has(node.id)) continue;
        const { id, failureMode, remedy, failingSince: from, recoverAt } = node;
        const failure: NodeFailure = {
          node: id,
          failureMode,
          remedy,
          from,
          offlineAt: node.isUnresponsive ? from : null,
          until: null,
          endedBy: null,
          firstFiring: null,
          posts: [],
        };
        openFailures.set(id, { failure, recoverAt });
        failures.push(failure);
      }
    },
    recordFiring(policy, node) {
      const open = openFailures.get(node);
      if (open === undefined) lateFirings++;
      else open.failure.firstFiring ??= { policy, at: parts.serviceNow() };
    },
    recordPost: ({ node }) => void openFailures.get(node)?.failure.posts.push(parts.serviceNow()),
    failures,
    lateFirings: () => lateFirings,
  };
}
