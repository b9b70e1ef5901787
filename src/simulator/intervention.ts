import type { EpochMs } from "../model/time.ts";
import type { FailureStart } from "./fleet/failure-modes.ts";
import { findNode, injectFailure, liftQuarantine, quarantine, removeNode, restart } from "./fleet/fleet.ts";
import type { SimulatedNode } from "./fleet/node.ts";
import type { ResourceLoad } from "./fleet/resource-load.ts";
import type { SimulatedService } from "./http/service.ts";
import { advanceWorld } from "./network.ts";

/** Changes to single nodes that bypass the service's API. */
export interface Interventions {
  /** A node falls ill; absent instants: it neither passes by itself nor changes. */
  startFailure(id: string, illness: Pick<FailureStart, "failureMode" | "remedy"> & Partial<FailureStart>): void;
  /** A load begins to take one of its resources, or will, or has long begun; it replaces an earlier one. Null: it ends. */
  setLoad(id: string, strain: ResourceLoad | null): void;
  /** A node that is online restarts so fast that its status never shows it. */
  restart(id: string): void;
  /** A person quarantines a node. */
  quarantine(id: string, until: EpochMs): void;
  /** A node leaves the fleet and returns at `returnAt`, on the service's clock. */
  leaveFleet(id: string, returnAt: EpochMs): void;
  /** An operator ends a quarantine, including ours. */
  liftQuarantine(id: string): void;
}

/** Interventions in a service whose clock is `now`. They throw where there is no such node. */
export function createInterventions(service: SimulatedService, now: () => EpochMs): Interventions {
  const { fleet } = service.world;
  function at(id: string, then: (node: SimulatedNode, at: EpochMs) => void): void {
    advanceWorld(service.world, now());
    const node = findNode(fleet, id);
    if (node === null) throw new Error(`there is no node ${JSON.stringify(id)}`);
    then(node, service.world.now);
  }
  const never = Number.POSITIVE_INFINITY;
  return {
    startFailure: (id, failure) =>
      at(id, (node, now) => injectFailure(fleet, node, { recoverAt: never, nextPhaseAt: never, ...failure }, now)),
    setLoad: (id, load) =>
      at(id, (node) => {
        node.load = load;
      }),
    restart: (id) => at(id, (node, now) => restart(fleet, node, now)),
    quarantine: (id, until) => at(id, (node, now) => quarantine(fleet, node, until, now)),
    leaveFleet: (id, returnAt) => at(id, (node, now) => removeNode(fleet, node, now, returnAt)),
    liftQuarantine: (id) => at(id, (node, now) => liftQuarantine(fleet, node, now)),
  };
}
