import type { EpochMs } from "../../../src/model/time.ts";
import type { FailureMode, Remedy } from "../../../src/simulator/fleet/failure-modes.ts";
import type { PostAttempt, SimulationParts } from "../daemon/simulation-parts.ts";

/** An illness of a node, by the simulator's own truth. Instants are on the service's clock. */
export interface NodeFailure {
  readonly node: string;
  readonly failureMode: FailureMode;
  readonly remedy: Remedy;
  readonly from: EpochMs;
  /** When it began to be offline; null: it never was. */
  offlineAt: EpochMs | null;
  /** Null: it lasts. */
  until: EpochMs | null;
  endedBy: "itself" | "people" | "us" | null;
  /** The first policy that fired on it. */
  firings: { readonly policy: string; readonly at: EpochMs } | null;
  readonly posts: EpochMs[];
}

/** All illnesses of a fleet, looked for at every step. */
export interface FailureCensus {
  observe(): void;
  recordFiring(policy: string, node: string): void;
  recordPost(post: PostAttempt): void;
  readonly failures: readonly NodeFailure[];
  /** Timers that began to fire on nodes that were well again by then. */
  missed(): number;
}

interface ObservedNode {
  readonly failure: NodeFailure;
  healAt: EpochMs;
}

/** A census that begins now: what was there before is left out of it. */
export function createFailureCensus(parts: SimulationParts): FailureCensus {
  const { nodes } = parts.service.world.fleet;
  const patients = new Map<string, ObservedNode>();
  const failures: NodeFailure[] = [];
  let late = 0;

  function endFailure({ failure, healAt }: ObservedNode, now: EpochMs): void {
    failure.until = Math.min(now, healAt);
    failure.endedBy = healAt > now ? "us" : failure.remedy === "time" ? "itself" : "people";
    patients.delete(failure.node);
  }

  return {
    observe() {
      const now = parts.serviceNow();
      for (const node of nodes) {
        const patient = patients.get(node.id);
        if (patient !== undefined && (node.failureMode === "none" || node.recoverAt !== patient.healAt)) {
          endFailure(patient, now);
        } else if (patient !== undefined && node.isUnresponsive) patient.failure.offlineAt ??= now;
        if (node.failureMode === "none" || patients.has(node.id)) continue;
        const { id, failureMode: ailment, remedy: cure, failingSince: from, recoverAt: healAt } = node;
        const failure = {
          node: id,
          failureMode: ailment,
          remedy: cure,
          from,
          until: null,
          endedBy: null,
          firings: null,
          posts: [],
        };
        patients.set(id, { failure: { ...failure, offlineAt: node.isUnresponsive ? from : null }, healAt });
        failures.push(patients.get(id)!.failure);
      }
    },
    recordFiring(policy, node) {
      const patient = patients.get(node);
      if (patient === undefined) late++;
      else patient.failure.firings ??= { policy, at: parts.serviceNow() };
    },
    recordPost: ({ node }) => void patients.get(node)?.failure.posts.push(parts.serviceNow()),
    failures,
    missed: () => late,
  };
}
