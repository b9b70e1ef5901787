import type { Blocker } from "../model/decision.ts";
import type { Action, Episode } from "../model/episode.ts";
import { NODE_STATUSES, type NodeId, type NodeStatus } from "../model/node.ts";
import type { Mode } from "../model/policy.ts";
import { DOMAINS, type Domain, type Safety } from "../model/safety.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import type { Breaker, Storm } from "./alarm.ts";
import type { Casebook } from "./casebook.ts";
import type { Incident } from "./incident.ts";
import type { NodeLimits } from "./limits.ts";
import type { Policy } from "./policy.ts";
import { slotsOf } from "./scope.ts";

/** A policy as it is in force. */
export interface ActivePolicy {
  readonly policy: Policy;
  /** The least of its own mode, the ceiling, and what its efficacy leaves it. */
  readonly mode: Mode;
  /** Whether it has fallen back to dry_run for healing too little. */
  readonly fallen: boolean;
  /** Whether an action under this text was verified. */
  readonly proven: boolean;
}

/** Dry runs have limits of their own: what they count never meets what was really done. */
export const isShadow = ({ mode }: ActivePolicy): boolean => mode === "dry_run";

/** Nodes of one region or country. */
export interface PlaceCount {
  readonly nodes: number;
  /** Online, and not under our hand: one that we took out a moment ago may still be listed as online. */
  readonly online: number;
  readonly disrupted: number;
}

/** A survey of the fleet, as limits count it. */
export interface Survey {
  readonly nodes: number;
  /** Offline, of unknown status, firing, or under our hand. */
  readonly unhealthy: number;
  readonly disrupted: ReadonlySet<NodeId>;
  readonly places: Readonly<Record<Domain, ReadonlyMap<string, PlaceCount>>>;
}

/** All that guards look at beside the node itself: of real actions, or of dry runs. */
export interface Facts {
  readonly now: EpochMs;
  /** Our wall clock and the service's: a window must be open on both. */
  readonly instants: readonly EpochMs[];
  readonly shadow: boolean;
  readonly safety: Safety;
  readonly limits: NodeLimits;
  readonly survey: Survey;
  readonly casebook: Casebook;
  readonly paused: string | null;
  /** Why nothing can be written down; null: it can. */
  readonly journal: string | null;
  /** Why the service takes no action of ours; null: it does, as far as we know. */
  readonly credentials: string | null;
  readonly trust: readonly Blocker[];
  readonly storm: Storm | null;
  readonly breaker: Breaker;
  readonly incidents: readonly Incident[];
  /** Actions that are sent and not yet verified, of nodes that are there. */
  readonly inFlight: readonly Action[];
  /** When actions were sent, within the time that max_actions counts. */
  readonly actedAt: readonly EpochMs[];
  /** How many of them are assumed, because the journal is new. */
  readonly assumedActions: number;
  /** What a policy's windows and obstacles say now. */
  closed(policy: Policy): readonly Blocker[];
  /** The episode on which a policy is tried that was not proven yet; null: none, the next to act is it. */
  canary(active: ActivePolicy): Episode | null;
}

/** Whether an action is being sent, or was sent and is not yet judged. */
export const isUnderWay = ({ state }: Action): boolean => state === "posting" || state === "sent";

/** Nodes that are under our hand: an action of ours is under way, or our quarantine lasts. */
export function disruptedNodes(casebook: Casebook, shadow: boolean): Set<NodeId> {
  const nodes = new Set<NodeId>();
  for (const episode of casebook.openEpisodes()) {
    if (episode.shadow !== shadow || episode.state === "suspended") continue;
    if (episode.state === "acting" || episode.quarantine !== null) nodes.add(episode.node);
  }
  return nodes;
}

const OFFLINE = NODE_STATUSES.indexOf("offline");
const UNKNOWN = NODE_STATUSES.indexOf("unknown");
const ONLINE = NODE_STATUSES.indexOf("online");

/**
 * Surveys the fleet. `policies`: those whose firing counts; for dry runs all of them, else those that are none.
 *
 * Counts go by place index first, for a fleet has many nodes and few places: the thread is held all the while.
 */
export function surveyFleet(
  fleet: Fleet,
  casebook: Casebook,
  policies: readonly ActivePolicy[],
  shadow: boolean,
): Survey {
  const { ids, place, status, places } = fleet;
  const slots = slotsOf(ids);
  const tally = { nodes: counters(places), online: counters(places), disrupted: counters(places) };
  const isUnhealthy = new Uint8Array(fleet.slots);
  for (let slot = 0; slot < fleet.slots; slot++) {
    if (ids[slot] === "") continue;
    const state = status[slot]!;
    tally.nodes[place[slot]!]!++;
    if (state === ONLINE) tally.online[place[slot]!]!++;
    if (state === OFFLINE || state === UNKNOWN) isUnhealthy[slot] = 1;
  }
  const disrupted = disruptedNodes(casebook, shadow);
  for (const node of disrupted) {
    const slot = slots.get(node);
    if (slot === undefined) continue;
    isUnhealthy[slot] = 1;
    tally.disrupted[place[slot]!]!++;
    if (status[slot] === ONLINE) tally.online[place[slot]!]!--;
  }
  for (const { policy } of policies.filter((each) => shadow || !isShadow(each))) {
    for (const [node, { state }] of casebook.timersOf(policy.rule.name)) {
      const slot = slots.get(node);
      if (slot !== undefined && state === "firing") isUnhealthy[slot] = 1;
    }
  }
  return {
    nodes: fleet.count,
    unhealthy: isUnhealthy.reduce((sum, each) => sum + each, 0),
    disrupted,
    places: countsByPlace(fleet, tally),
  };
}

type Tally = Readonly<Record<keyof PlaceCount, Uint32Array>>;

const counters = (places: Fleet["places"]): Uint32Array => new Uint32Array(places.length);

/** What was counted by index of the place, by region and by country. */
function countsByPlace({ places }: Fleet, tally: Tally): Survey["places"] {
  const counts = { region: new Map<string, PlaceCount>(), country: new Map<string, PlaceCount>() };
  for (const [index, place] of places.entries()) {
    const [nodes, online, disrupted] = [tally.nodes[index]!, tally.online[index]!, tally.disrupted[index]!];
    if (nodes === 0) continue;
    for (const domain of DOMAINS) {
      const known = counts[domain].get(place[domain]) ?? { nodes: 0, online: 0, disrupted: 0 };
      counts[domain].set(place[domain], {
        nodes: known.nodes + nodes,
        online: known.online + online,
        disrupted: known.disrupted + disrupted,
      });
    }
  }
  return counts;
}

/** A node as guards see it. */
export interface NodeSight {
  readonly id: NodeId;
  readonly status: NodeStatus;
  readonly country: string;
  readonly region: string;
  /** What `safety.protected` says of it. */
  readonly protected: "true" | "false" | "unknown";
}
