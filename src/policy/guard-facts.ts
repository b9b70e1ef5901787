import { eachInSteps, type Steps } from "../base/steps.ts";
import type { Safety } from "../config/schema/safety.ts";
import type { TrustBlocker } from "../inventory/trust.ts";
import { FAILURE_DOMAINS, type FailureDomain, NODE_STATUSES, type NodeId, type NodeStatus } from "../model/node.ts";
import type { Mode, Step } from "../model/policy/policy.ts";
import type { Blocker } from "../model/remediation/decision.ts";
import type { Action, Episode } from "../model/remediation/episode.ts";
import type { Fleet, Location } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import { slotsById } from "./cel/field-readers.ts";
import { countRecords, isSeenOnline } from "./cel/fleet-aggregates.ts";
import { isAcceptableLoss, isDown, isLost } from "./episodes/lost-nodes.ts";
import type { Incident } from "./guards/correlated-failure.ts";
import type { EffectiveLimits } from "./guards/safety-limits.ts";
import type { Breaker, Storm } from "./guards/storm-and-breaker.ts";
import { isLateEffect } from "./own-actions.ts";
import type { Policy, PolicyEvaluation } from "./policy.ts";
import type { RemediationRecords } from "./remediation-records.ts";
import type { Timer } from "./timer.ts";

/** A policy and its current status. */
export interface ActivePolicy {
  readonly policy: Policy;
  /** The lowest of its own mode, `safety.mode`, and dry_run if its efficacy is too low. */
  readonly mode: Mode;
  /**
   * Whether it has fallen back to dry_run because its efficacy is too low. This ends when the policy's text changes, or
   * with reset-breaker.
   */
  readonly hasFallenBack: boolean;
  /** Whether an action under this version of the policy was verified. */
  readonly proven: boolean;
}

/**
 * Returns whether a policy only records actions. Dry runs have separate limits and are never counted with real actions.
 */
export const isDryRun = ({ mode }: ActivePolicy): boolean => mode === "dry_run";

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
export interface FleetCounts {
  /** Number of nodes of the fleet and of lost nodes. Nodes that left without an action of ours don't count. */
  readonly nodes: number;
  /** Number of nodes that are offline, of unknown status, firing or disrupted. */
  readonly unhealthy: number;
  /** The same by cause. A node counts under the first one that applies. */
  readonly unhealthyBy: ReadonlyMap<string, number>;
  readonly disrupted: ReadonlySet<NodeId>;
  /** Episodes whose node is lost (see {@link isLost}). */
  readonly lost: readonly Episode[];
  /** Episodes whose node is lost, or down after a step while no step is in progress (see {@link isAcceptableLoss}). */
  readonly unreturned: readonly Episode[];
  /** Episodes whose quarantine should have ended, but still makes their node unavailable. */
  readonly overdue: readonly Episode[];
  readonly domains: Readonly<Record<FailureDomain, ReadonlyMap<string, DomainCount>>>;
}

/** A node under a policy whose next step is considered. */
export interface Candidate {
  readonly active: ActivePolicy;
  readonly node: NodeObservation;
  readonly timer: Timer;
  /** The episode, or null if none has begun. */
  readonly episode: Episode | null;
  readonly evaluation: PolicyEvaluation;
  /** When the oldest datum of the evaluation was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
  /** Whether an operator approved this step. */
  readonly approved: boolean;
}

/** Returns the next step, or null if none is left. */
export const nextStep = ({ active, episode }: Candidate): Step | null =>
  active.policy.spec.steps[episode?.step ?? 0] ?? null;

/** What guards read besides the candidate, either for real actions or for dry runs. */
export interface GuardFacts {
  readonly now: EpochMs;
  readonly safety: Safety;
  readonly limits: EffectiveLimits;
  readonly fleetCounts: FleetCounts;
  readonly records: RemediationRecords;
  /** Returns the name of a node; its id if it has none or is not listed. */
  nameOf(node: NodeId): string;
  readonly pauseDetail: string | null;
  /** Why actions can't be recorded, or null if they can. */
  readonly journalError: string | null;
  /** Why the service rejects our actions, or null if it has not rejected one recently. */
  readonly credentialsError: string | null;
  readonly trustBlockers: readonly TrustBlocker[];
  readonly storm: Storm | null;
  readonly breaker: Breaker;
  readonly incidents: readonly Incident[];
  /** Actions that are sent and not yet verified. */
  readonly inFlight: readonly Action[];
  /** When actions were sent, within the period of max_actions. */
  readonly sentAtTimes: readonly EpochMs[];
  /** How many of them are assumed because the journal is new. */
  readonly assumedActionCount: number;
  /** Returns the blockers from the windows and external blockers of a policy. */
  policyBlockers(policy: Policy): readonly Blocker<"window" | "blocked_by">[];
  /** Returns the canary episode of an unproven policy. If it is null, the next episode to act becomes the canary. */
  canaryEpisode(policy: Policy): Episode | null;
}

/**
 * Returns, in steps, the episodes whose node is disrupted: a step is in progress, a step has left the node down, our
 * quarantine lasts, or the node is lost. There is one for each node, although several policies may have lost the same
 * node.
 */
export function* disruptedEpisodes(records: RemediationRecords, dryRun: boolean): Steps<readonly Episode[]> {
  const byNode = new Map<NodeId, Episode>();
  yield* eachInSteps(records.openEpisodes(), (episode) => {
    if (episode.dryRun === dryRun && isDisrupted(records, episode)) byNode.set(episode.node, episode);
  });
  return [...byNode.values()];
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
 * Counts the nodes of a fleet, in steps. Nodes also count as unhealthy if a timer of `policies` is firing on them. Unless
 * `dryRun` is set, policies in dry_run are ignored. `now` is by the journal's clock. Decisions need all steps at once,
 * because the records may change between two of them.
 */
export function* countFleet(
  fleet: Fleet,
  records: RemediationRecords,
  policies: readonly ActivePolicy[],
  dryRun: boolean,
  now: EpochMs,
): Steps<FleetCounts> {
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
  const domains = { region: new Map<string, DomainCount>(), country: new Map<string, DomainCount>() };
  const addTo = (domain: FailureDomain, name: string, { nodes, online, disrupted }: DomainCount) => {
    const known = domains[domain].get(name) ?? NO_NODES;
    const sums = { nodes: known.nodes + nodes, online: known.online + online };
    domains[domain].set(name, { ...sums, disrupted: known.disrupted + disrupted });
  };
  const add = (location: Location, count: DomainCount) => {
    for (const domain of FAILURE_DOMAINS) addTo(domain, location[domain], count);
  };
  let [notListed, disruptedOnly] = [0, 0];
  // The service may list a node elsewhere while it is down. Where it was before, it is missing.
  const addDisrupted = (slot: number, before: Location) => {
    disruptedOnly += markUnhealthy(slot);
    const location = locations[locationIndex[slot]!]!;
    add(location, { nodes: 0, online: isSeenOnline(fleet, slot) ? -1 : 0, disrupted: 1 });
    for (const domain of FAILURE_DOMAINS)
      if (before[domain] !== location[domain]) addTo(domain, before[domain], DISRUPTED_NODE);
  };
  for (const [index, location] of locations.entries()) {
    const nodes = counted.nodes[index]!;
    if (nodes > 0) add(location, { nodes, online: counted.seenOnline[index]!, disrupted: 0 });
  }
  const disrupted = yield* disruptedEpisodes(records, dryRun);
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
    for (const slot of yield* firingSlots(fleet, records, policy.spec.name)) firing += markUnhealthy(slot);
    unhealthyBy.set(`firing under ${policy.spec.name}`, firing);
  }
  return {
    nodes: fleet.count + notListed,
    unhealthy: unhealthyBy.values().reduce((sum, nodes) => sum + nodes, 0),
    unhealthyBy,
    disrupted: disruptedIds,
    lost: disrupted.filter(isLost),
    unreturned: disrupted.filter(isAcceptableLoss),
    overdue: disrupted.filter(({ quarantine }) => quarantine?.overdue === true),
    domains,
  };
}

/** Finds, in steps, the nodes on which policies fire, so that the next counts of the fleet take few steps. */
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

/** The last ones that were read. Reading those of a mass event takes milliseconds, and each decision on an action needs them. */
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

/** The last observation of a node, as guards read it. */
export interface NodeObservation extends Location {
  readonly id: NodeId;
  readonly status: NodeStatus;
  /** The verdict of `safety.protected`. */
  readonly protected: "true" | "false" | "unknown";
}
