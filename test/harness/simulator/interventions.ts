import type { EpochMs } from "../../../src/model/time.ts";
import type { FailureStart } from "../../../src/simulator/fleet/failures.ts";
import { findNode, injectFailure, quarantine, removeNode, restart } from "../../../src/simulator/fleet/fleet.ts";
import { NEVER, type SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { ResourceLoad } from "../../../src/simulator/fleet/resource-usage.ts";
import type { SimulatedService } from "../../../src/simulator/http/service.ts";
import { advanceNetwork } from "../../../src/simulator/network.ts";

/** Changes to single nodes that bypass the service's API. */
export interface Interventions {
  /** Starts a failure. Without times, it neither ends nor changes phase. */
  startFailure(id: string, failure: Pick<FailureStart, "failureMode" | "remedy"> & Partial<FailureStart>): void;
  /** Sets the load on one of the node's resources, replacing any earlier one. Null removes it. */
  setLoad(id: string, load: ResourceLoad | null): void;
  /** Restarts an online node without a visible change of its status. */
  restart(id: string): void;
  /** Quarantines a node, as an operator does without the daemon. */
  quarantine(id: string, until: EpochMs): void;
  /** Removes a node from the fleet until `returnAt` on the service's clock. */
  leaveFleet(id: string, returnAt: EpochMs): void;
  /** Ends a quarantine, including one by the daemon. */
  liftQuarantine(id: string): void;
}

/** Creates interventions for a service whose time is `now`. They throw if the node does not exist. */
export function createInterventions(service: SimulatedService, now: () => EpochMs): Interventions {
  const { fleet } = service.network;
  function apply(id: string, change: (node: SimulatedNode, at: EpochMs) => void): void {
    advanceNetwork(service.network, now());
    const node = findNode(fleet, id);
    if (node === null) throw new Error(`there is no node ${JSON.stringify(id)}`);
    change(node, service.network.now);
  }
  return {
    startFailure: (id, failure) =>
      apply(id, (node, at) => injectFailure(fleet, node, { recoverAt: NEVER, nextPhaseAt: NEVER, ...failure }, at)),
    setLoad: (id, load) =>
      apply(id, (node) => {
        node.load = load;
      }),
    restart: (id) => apply(id, (node, at) => restart(fleet, node, at)),
    quarantine: (id, until) => apply(id, (node, at) => quarantine(fleet, node, until, at)),
    leaveFleet: (id, returnAt) => apply(id, (node, at) => removeNode(fleet, node, at, returnAt)),
    liftQuarantine: (id) => apply(id, (node, at) => quarantine(fleet, node, NEVER, at)),
  };
}
