import type { EpochMs } from "../model/time.ts";
import { type DetailedNode, detailedNode } from "./api/node-view.ts";
import { type DetailedSession, detailedSession } from "./api/session-view.ts";
import type { FailureMode, Remedy } from "./fleet/failure-modes.ts";
import { findNode, type MembershipChange } from "./fleet/fleet.ts";
import type { SimulatedNode } from "./fleet/node.ts";
import type { SimulatedService } from "./http/service.ts";
import { SESSION_STATES } from "./sessions/sessions.ts";

/** Replies of one kind. */
export interface ReplyCount {
  /** The endpoint as the spec writes it, with its method; "other" for paths that it does not have. */
  readonly endpoint: string;
  /** The status, or what became of a reply that never arrived whole: hang, reset, truncate. */
  readonly status: number | string;
  readonly count: number;
}

/** A node as it is: what the service would say of it, and what is wrong with it. */
export interface ActualNode extends DetailedNode {
  readonly failureMode: FailureMode;
  readonly remedy: Remedy | null;
  /** When what ails it passes by itself, or is mended by a person; null: nothing ails it. */
  readonly recoversAt: EpochMs | null;
  /** Whether its region is cut off. */
  readonly isRegionDown: boolean;
}

/** Every kind of reply so far, by endpoint. */
export const replyCounts = (service: SimulatedService): ReplyCount[] =>
  [...service.replyCounts].flatMap(([endpoint, statuses]) =>
    [...statuses].map(([status, count]) => ({ endpoint, status, count })),
  );

/** Requests so far that were answered with 429. */
export const rateLimitedCount = (service: SimulatedService): number =>
  replyCounts(service).reduce((sum, { status, count }) => sum + (status === 429 ? count : 0), 0);

/** The last joins and leaves of nodes up to the last request, oldest first. */
export const membershipChangesOf = (service: SimulatedService): readonly MembershipChange[] =>
  service.world.fleet.membershipChanges;

/** Every node of the fleet in the order of joining, past the API and its faults, as of the last request. */
export function* actualNodes(service: SimulatedService): Generator<ActualNode> {
  for (const node of service.world.fleet.nodes) yield toActualNode(service, node);
}

/** One node, past the API and its faults, as of the last request; null: the fleet has none of that id. */
export function actualNode(service: SimulatedService, id: string): ActualNode | null {
  const node = findNode(service.world.fleet, id);
  return node === null ? null : toActualNode(service, node);
}

/** Every session that can be read, those that ended a while ago included, in the order of their starts. */
export function* actualSessions(service: SimulatedService): Generator<DetailedSession> {
  const { now, traffic } = service.world;
  const { ordered: roster } = traffic.population.sessions;
  const everyState = (1 << SESSION_STATES.length) - 1;
  for (const slot of roster.page(everyState, 0, roster.count(everyState))) yield detailedSession(service, slot, now);
}

function toActualNode(service: SimulatedService, node: SimulatedNode): ActualNode {
  const { failureMode, remedy, isRegionDown: dark, recoverAt } = node;
  const detail = detailedNode(service, node, service.world.now, Number.POSITIVE_INFINITY);
  const isIll = failureMode !== "none";
  return {
    ...detail,
    failureMode,
    remedy: isIll ? remedy : null,
    recoversAt: isIll ? recoverAt : null,
    isRegionDown: dark,
  };
}
