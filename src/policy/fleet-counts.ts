import { eachInSteps, runAtOnce, type Steps } from "../base/steps.ts";
import { FAILURE_DOMAINS, type FailureDomain, NODE_STATUSES } from "../model/node.ts";
import type { Episode } from "../model/remediation/episode.ts";
import type { Fleet, Location } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import { slotsById } from "./cel/field-readers.ts";
import { countRecords, isSeenOnline } from "./cel/fleet-aggregates.ts";
import { isLateEffect } from "./episodes/attempts.ts";
import { isAcceptableLoss, isDown, isLost } from "./episodes/episode-states.ts";
import { type ActivePolicy, isDryRun } from "./policy.ts";
import type { RemediationRecords } from "./remediation-records.ts";

/** Node counts of one region or country, including lost nodes. */
export interface DomainCount {
  readonly nodes: number;
  /**
   * Nodes that the last complete walk has shown as online and that are not disrupted. A node that we disrupted recently
   * may still be listed as online.
   */
  readonly online: number;
  readonly disrupted: number;
}

/** The counts of a region or country without nodes. */
export const NO_NODES: DomainCount = { nodes: 0, online: 0, disrupted: 0 };

const DISRUPTED_NODE: DomainCount = { ...NO_NODES, disrupted: 1 };

/** Node counts of the fleet that the limits use. */
export type FleetCounts = ReturnType<typeof countFleet>;

/**
 * Returns the episodes whose node is disrupted: a step is in progress, a step has left the node down, our quarantine
 * lasts and the node was not offline before, or the node is lost. There is one for each node, although several policies
 * may have lost the same node.
 */
export function disruptedEpisodes(records: RemediationRecords, dryRun: boolean): readonly Episode[] {
  const disrupted = records
    .openEpisodes()
    .filter((episode) => episode.dryRun === dryRun && isDisrupted(records, episode));
  return [...new Map(disrupted.map((episode) => [episode.node, episode])).values()];
}

function isDisrupted(records: RemediationRecords, episode: Episode): boolean {
  if (episode.state === "suspended") return isLost(episode);
  if (episode.state === "acting" || isDown(episode)) return true;
  return episode.quarantine !== null && !wasOffline(records, episode);
}

/**
 * Returns whether the node was offline before the first action of its episode, and was not seen available before a later
 * one. If so, a quarantine does not disrupt it.
 */
function wasOffline(records: RemediationRecords, { id }: Episode): boolean {
  const sent = records.actionsOf(id).filter(({ sentAt }) => sentAt !== null);
  return (
    sent[0]?.statusBefore === "offline" &&
    sent.every(({ statusBefore }) => statusBefore === "offline" || statusBefore === "rebooting")
  );
}

/**
 * Counts the nodes of a fleet. Nodes also count as unhealthy if a timer of `policies` is firing on them. Unless `dryRun`
 * is set, policies in dry_run are ignored. `now` is by the journal's clock. After a mass event this takes long unless
 * {@link findFiringNodes} was called before.
 */
export function countFleet(
  fleet: Fleet,
  records: RemediationRecords,
  policies: readonly ActivePolicy[],
  dryRun: boolean,
  now: EpochMs,
) {
  const { locationIndex, status, locations } = fleet;
  const counted = countRecords(fleet);
  const isUnhealthy = counted.isUnhealthy.slice();
  const unhealthyBy = new Map([
    ["offline", counted.offline],
    ["of unknown status", counted.unknown],
  ]);
  /** Returns 1 if the node was not counted as unhealthy before, or 0. */
  const markUnhealthy = (slot: number) => {
    const added = 1 - isUnhealthy[slot]!;
    isUnhealthy[slot] = 1;
    return added;
  };
  const { domains, addTo, add } = createDomainCounts(fleet);
  let [notListed, disruptedOnly] = [0, 0];
  // The service may list a node elsewhere while it is down. Where it was before, it is missing.
  const addDisrupted = (slot: number, before: Location) => {
    disruptedOnly += markUnhealthy(slot);
    const location = locations[locationIndex[slot]!]!;
    add(location, { nodes: 0, online: isSeenOnline(fleet, slot) ? -1 : 0, disrupted: 1 });
    for (const domain of FAILURE_DOMAINS)
      if (before[domain] !== location[domain]) addTo(domain, before[domain], DISRUPTED_NODE);
  };
  const disrupted = disruptedEpisodes(records, dryRun);
  const disruptedIds = new Set(disrupted.map(({ node }) => node));
  for (const episode of disrupted) {
    const slot = slotsById(fleet).get(episode.node);
    if (slot === undefined) {
      notListed++;
      add(episode, { nodes: 1, online: 0, disrupted: 1 });
    } else addDisrupted(slot, episode);
  }
  for (const action of dryRun ? [] : records.actions()) {
    const slot = disruptedIds.has(action.node) ? undefined : slotsById(fleet).get(action.node);
    if (slot === undefined || !isLateEffect(records, action, NODE_STATUSES[status[slot]!]!, now)) continue;
    disruptedIds.add(action.node);
    addDisrupted(slot, action);
  }
  unhealthyBy.set("disrupted", disruptedOnly + notListed);
  for (const { policy } of policies.filter((policy) => dryRun || !isDryRun(policy))) {
    let firing = 0;
    for (const slot of runAtOnce(firingSlots(fleet, records, policy.spec.name))) firing += markUnhealthy(slot);
    unhealthyBy.set(`firing under ${policy.spec.name}`, firing);
  }
  return {
    /** Number of nodes of the fleet and of lost nodes. Nodes that left without an action of ours don't count. */
    nodes: fleet.count + notListed,
    /** Number of nodes that are offline, of unknown status, firing or disrupted. */
    unhealthy: unhealthyBy.values().reduce((sum, nodes) => sum + nodes, 0),
    /** The same by cause. A node counts under the first one that applies. */
    unhealthyBy,
    disrupted: disruptedIds,
    /** Episodes whose node is lost (see {@link isLost}). */
    lost: disrupted.filter(isLost),
    /** Episodes whose node is lost, or down after a step while no step is in progress (see {@link isAcceptableLoss}). */
    unreturned: disrupted.filter(isAcceptableLoss),
    /** Episodes whose quarantine should have ended, but still makes their node unavailable. */
    overdue: disrupted.filter(({ quarantine }) => quarantine?.overdue === true),
    domains,
  };
}

/** Returns the counts of every region and country of a fleet, none of them disrupted, and functions that add to them. */
function createDomainCounts(fleet: Fleet) {
  const domains = { region: new Map<string, DomainCount>(), country: new Map<string, DomainCount>() };
  const addTo = (domain: FailureDomain, name: string, { nodes, online, disrupted }: DomainCount) => {
    const known = domains[domain].get(name) ?? NO_NODES;
    const sums = { nodes: known.nodes + nodes, online: known.online + online };
    domains[domain].set(name, { ...sums, disrupted: known.disrupted + disrupted });
  };
  const add = (location: Location, count: DomainCount) => {
    for (const domain of FAILURE_DOMAINS) addTo(domain, location[domain], count);
  };
  const counted = countRecords(fleet);
  for (const [index, location] of fleet.locations.entries()) {
    const nodes = counted.nodes[index]!;
    if (nodes > 0) add(location, { nodes, online: counted.seenOnline[index]!, disrupted: 0 });
  }
  return { domains, addTo, add };
}

/** Finds, in steps, the nodes on which policies fire, so that the next counts of the fleet take little time. */
export function* findFiringNodes(
  fleet: Fleet,
  records: RemediationRecords,
  policies: readonly ActivePolicy[],
): Steps<void> {
  for (const { policy } of policies) yield* firingSlots(fleet, records, policy.spec.name);
}

/** Slots of listed nodes on which policies fire, and the ids and the revision of the timers for which they are valid. */
interface FiringSlots {
  readonly ids: Fleet["ids"];
  readonly revision: number;
  readonly byPolicy: Map<string, readonly number[]>;
}

/**
 * The last slots that were read. After a mass event, reading them takes milliseconds, and each decision on an action
 * needs them.
 */
const lastFiringSlots = new WeakMap<RemediationRecords, FiringSlots>();

/** Returns the slots of listed nodes on which a policy fires, in steps unless they are known. */
function* firingSlots(fleet: Fleet, records: RemediationRecords, policy: string): Steps<readonly number[]> {
  const [ids, revision] = [fleet.ids, records.timersRevision()];
  let last = lastFiringSlots.get(records);
  if (last?.ids !== ids || last.revision !== revision) {
    last = { ids, revision, byPolicy: new Map() };
    lastFiringSlots.set(records, last);
  }
  const known = last.byPolicy.get(policy);
  if (known !== undefined) return known;
  const slots: number[] = [];
  yield* eachInSteps(records.timersOf(policy), ([node, { state }]) => {
    // Another fleet may have been looked at since the last step, so the map is not kept.
    const slot = state === "firing" ? slotsById(fleet).get(node) : undefined;
    if (slot !== undefined) slots.push(slot);
  });
  // Not used again if a timer was set between two steps.
  last.byPolicy.set(policy, slots);
  return slots;
}
