import type { EpochMs } from "../model/time.ts";
import type { Ailment, Cure } from "./fleet/failure-modes.ts";
import { type FleetMove, findNode } from "./fleet/fleet.ts";
import type { SimulatedNode } from "./fleet/node.ts";
import { type DetailedNode, detailedNode } from "./api/node-view.ts";
import type { SimulatedService } from "./http/service.ts";
import { type DetailedSession, detailedSession } from "./api/session-view.ts";
import { STATES } from "./sessions/sessions.ts";

/** Replies of one kind. */
export interface ReplyCount {
  /** The endpoint as the spec writes it, with its method; "other" for paths that it does not have. */
  readonly endpoint: string;
  /** The status, or what became of a reply that never arrived whole: hang, reset, truncate. */
  readonly status: number | string;
  readonly count: number;
}

/** A node as it is: what the service would say of it, and what is wrong with it. */
export interface NodeTruth extends DetailedNode {
  readonly ailment: Ailment;
  readonly cure: Cure | null;
  /** When what ails it passes by itself, or is mended by a person; null: nothing ails it. */
  readonly healsAt: EpochMs | null;
  /** Whether its region is cut off. */
  readonly dark: boolean;
}

/** Every kind of reply so far, by endpoint. */
export const replyCounts = (service: SimulatedService): ReplyCount[] =>
  [...service.replies].flatMap(([endpoint, statuses]) =>
    [...statuses].map(([status, count]) => ({ endpoint, status, count })),
  );

/** Requests so far that were answered with 429. */
export const rateLimitedCount = (service: SimulatedService): number =>
  replyCounts(service).reduce((sum, { status, count }) => sum + (status === 429 ? count : 0), 0);

/** The last joins and leaves of nodes up to the last request, oldest first. */
export const fleetMoves = (service: SimulatedService): readonly FleetMove[] => service.world.fleet.moves;

/** Every node of the fleet in the order of joining, past the API and its faults, as of the last request. */
export function* nodesOf(service: SimulatedService): Generator<NodeTruth> {
  for (const node of service.world.fleet.nodes) yield truth(service, node);
}

/** One node, past the API and its faults, as of the last request; null: the fleet has none of that id. */
export function nodeTruth(service: SimulatedService, id: string): NodeTruth | null {
  const node = findNode(service.world.fleet, id);
  return node === null ? null : truth(service, node);
}

/** Every session that can be read, those that ended a while ago included, in the order of their starts. */
export function* sessionsOf(service: SimulatedService): Generator<DetailedSession> {
  const { now, traffic } = service.world;
  const { roster } = traffic.population.sessions;
  const everyState = (1 << STATES.length) - 1;
  for (const slot of roster.page(everyState, 0, roster.count(everyState))) yield detailedSession(service, slot, now);
}

function truth(service: SimulatedService, node: SimulatedNode): NodeTruth {
  const { ailment, cure, dark, healAt } = node;
  const detail = detailedNode(service, node, service.world.now, Number.POSITIVE_INFINITY);
  const isIll = ailment !== "none";
  return { ...detail, ailment, cure: isIll ? cure : null, healsAt: isIll ? healAt : null, dark };
}
