import type { EpochMs } from "../../../src/model/time.ts";
import { type DetailedNode, detailedNode } from "../../../src/simulator/api/node-view.ts";
import { type DetailedSession, detailedSession } from "../../../src/simulator/api/session-view.ts";
import type { FailureMode, Remedy } from "../../../src/simulator/fleet/failures.ts";
import { findNode, type MembershipChange } from "../../../src/simulator/fleet/fleet.ts";
import type { SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import type { SimulatedService } from "../../../src/simulator/http/service.ts";
import { SESSION_STATES } from "../../../src/simulator/sessions/sessions.ts";

/** The actual state of a node: its correct detail and its failure. */
export interface ActualNode extends DetailedNode {
  readonly failureMode: FailureMode;
  readonly remedy: Remedy | null;
  /** When the failure ends without an action, or null if the node has no failure. */
  readonly recoversAt: EpochMs | null;
  /** Whether its region is cut off. */
  readonly isRegionDown: boolean;
}

/** Returns recent joins and leaves up to the last request, oldest first. */
export const membershipChangesOf = (service: SimulatedService): readonly MembershipChange[] =>
  service.network.fleet.membershipChanges;

/** Yields the actual state of every node as of the last request, in the order of joining. */
export function* actualNodes(service: SimulatedService): Generator<ActualNode> {
  for (const node of service.network.fleet.nodes) yield toActualNode(service, node);
}

/** Returns the actual state of a node as of the last request, or null if the fleet has no such node. */
export function actualNode(service: SimulatedService, id: string): ActualNode | null {
  const node = findNode(service.network.fleet, id);
  return node === null ? null : toActualNode(service, node);
}

/** Yields every readable session, including recently ended ones, in the order of their starts. */
export function* actualSessions(service: SimulatedService): Generator<DetailedSession> {
  const { now, traffic } = service.network;
  const { ordered } = traffic.population.sessions;
  const everyState = (1 << SESSION_STATES.length) - 1;
  for (const slot of ordered.page(everyState, 0, ordered.count(everyState))) yield detailedSession(service, slot, now);
}

function toActualNode(service: SimulatedService, node: SimulatedNode): ActualNode {
  const { failureMode, remedy, isRegionDown, recoverAt } = node;
  const detail = detailedNode(service, node, service.network.now, Number.POSITIVE_INFINITY);
  const isFailing = failureMode !== "none";
  return {
    ...detail,
    country: node.country,
    region: node.region,
    failureMode,
    remedy: isFailing ? remedy : null,
    recoversAt: isFailing ? recoverAt : null,
    isRegionDown,
  };
}
