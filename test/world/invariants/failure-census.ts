import type { EpochMs } from "../../../src/model/time.ts";
import type { Ailment, Cure } from "../../../src/simulator/fleet/failure-modes.ts";
import type { Post, Stage } from "../daemon/simulation-parts.ts";

/** An illness of a node, by the simulator's own truth. Instants are on the service's clock. */
export interface Illness {
  readonly node: string;
  readonly ailment: Ailment;
  readonly cure: Cure;
  readonly from: EpochMs;
  /** When it began to be offline; null: it never was. */
  offlineAt: EpochMs | null;
  /** Null: it lasts. */
  until: EpochMs | null;
  endedBy: "itself" | "people" | "us" | null;
  /** The first policy that fired on it. */
  fired: { readonly policy: string; readonly at: EpochMs } | null;
  readonly posts: EpochMs[];
}

/** All illnesses of a fleet, looked for at every step. */
export interface Census {
  look(): void;
  fired(policy: string, node: string): void;
  posted(post: Post): void;
  readonly illnesses: readonly Illness[];
  /** Timers that began to fire on nodes that were well again by then. */
  late(): number;
}

interface Patient {
  readonly illness: Illness;
  healAt: EpochMs;
}

/** A census that begins now: what was there before is left out of it. */
export function createCensus(stage: Stage): Census {
  const { nodes } = stage.service.world.fleet;
  const patients = new Map<string, Patient>();
  const illnesses: Illness[] = [];
  let late = 0;

  function discharge({ illness, healAt }: Patient, now: EpochMs): void {
    illness.until = Math.min(now, healAt);
    illness.endedBy = healAt > now ? "us" : illness.cure === "time" ? "itself" : "people";
    patients.delete(illness.node);
  }

  return {
    look() {
      const now = stage.serviceNow();
      for (const node of nodes) {
        const patient = patients.get(node.id);
        if (patient !== undefined && (node.ailment === "none" || node.healAt !== patient.healAt)) {
          discharge(patient, now);
        } else if (patient !== undefined && node.down) patient.illness.offlineAt ??= now;
        if (node.ailment === "none" || patients.has(node.id)) continue;
        const { id, ailment, cure, ailingSince: from, healAt } = node;
        const illness = { node: id, ailment, cure, from, until: null, endedBy: null, fired: null, posts: [] };
        patients.set(id, { illness: { ...illness, offlineAt: node.down ? from : null }, healAt });
        illnesses.push(patients.get(id)!.illness);
      }
    },
    fired(policy, node) {
      const patient = patients.get(node);
      if (patient === undefined) late++;
      else patient.illness.fired ??= { policy, at: stage.serviceNow() };
    },
    posted: ({ node }) => void patients.get(node)?.illness.posts.push(stage.serviceNow()),
    illnesses,
    late: () => late,
  };
}
