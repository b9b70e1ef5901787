import type { ApiClient } from "../api-client/client.ts";
import { DAY_MS, type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import { eachInSteps, type Steps } from "../base/steps.ts";
import type { CollectorReporter } from "../collectors/collector-health.ts";
import type { NodeId } from "../model/node.ts";
import type { Episode } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { isRecentReboot, ownActions, wasRebootedByUs } from "../policy/episodes/attempts.ts";
import { lapsedTimer } from "../policy/timer.ts";
import type { DecisionContext, EpisodeContext } from "./context.ts";
import { withdraw } from "./execution/episode-transitions.ts";
import { canaryFactKey } from "./policy-set.ts";
import { CHANGING_CREATED_AT_FACT } from "./state/created-at-changes.ts";
import type { RemediationState } from "./state/journaled-state.ts";

/** Creation times that differ by less are the same. Some responses may round them. */
const CREATED_AT_TOLERANCE_MS: DurationMs = 2 * SECOND_MS;

/** How often the journal records that `created_at` still changes too often. */
const REWRITE_MS: DurationMs = HOUR_MS;

/** Times on the clocks of the service and of the journal that differ by less are the same. */
const CLOCK_TOLERANCE_MS: DurationMs = 2 * SECOND_MS;
/** A service states boot times as `created_at` if it does so for this share of the online nodes. */
const BOOT_TIME_SHARE_MIN: Share = 0.9;
/** Fewer nodes prove nothing, because all of them may be new. */
const COMPARED_NODES_MIN = 3;

/** What is needed to determine whether an id still belongs to the same node. */
interface IdentityDeps extends Pick<DecisionContext, "observed" | "remediationState"> {
  readonly client: Pick<ApiClient, "serviceTime">;
}

type CreationTimes = Pick<Fleet, "ids" | "createdAtMs">;

/**
 * Returns, in steps, the ids that have come to belong to another node since the last call, or since the journal was
 * written. A different `created_at` shows this (spec, section 2.1), which only the detail of a node has. Details are read
 * in turn, and before each action. An id is returned again until the state of its previous node has been dropped. A
 * `created_at` that changes too often is reported. It shows nothing if too many nodes have one, or if it is the time of
 * our reboot.
 */
export function* findReplacedNodes(
  deps: IdentityDeps,
  reporter: Pick<CollectorReporter, "reportProblem">,
): Steps<ReadonlySet<NodeId>> {
  const { observed, remediationState } = deps;
  const { records, identities } = remediationState;
  const { fleet, at: now } = observed.latest!.snapshot;
  const { compared: previous, changes, replaced: nodes } = identities;
  const changed = previous === null ? [] : changedNodes(previous, fleet);
  const detail = "created_at changed more than twice, each time within a day of the previous change";
  for (const id of changed.length === 0 ? [] : changes.record(changed, countKnown(fleet), now))
    reporter.reportProblem({ reason: "changing_created_at", id, detail });
  recordChangingCreatedAt(remediationState, now);
  for (const node of changed) if (changes.identifies(node, now)) nodes.add(node);
  // The whole fleet would keep its other columns in memory.
  identities.compared = { ids: fleet.ids, createdAtMs: fleet.createdAtMs };
  for (const episodes of [records.openEpisodes(), records.closedEpisodes()])
    yield* eachInSteps(episodes, ({ node, nodeCreatedAt, replaced }) => {
      if (replaced !== true && isDifferent(deps, nodeCreatedAt, node)) nodes.add(node);
    });
  for (const [node, at] of records.loadedCreatedAt) {
    if (observed.createdAtOf(node) === null) continue;
    if (isDifferent(deps, at, node)) nodes.add(node);
    records.loadedCreatedAt.delete(node);
  }
  for (const node of nodes) {
    if (!isOurBoot(deps, node)) continue;
    nodes.delete(node);
    adoptCreatedAt(remediationState, otherEpisodes(deps, node), observed.createdAtOf(node)!);
  }
  recordCreatedAt(deps);
  return nodes;
}

/** Returns whether one id has come to belong to another node. {@link findReplacedNodes} still returns it later. */
export function isReplacedNode(deps: IdentityDeps, node: NodeId): boolean {
  const { observed } = deps;
  const { records, identities } = deps.remediationState;
  const slot = observed.slotOf(node);
  if (slot === null || !identities.changes.identifies(node, observed.latest!.snapshot.at)) return false;
  if (identities.compared !== null && isChanged(identities.compared, observed.fleet, slot)) return true;
  if (isDifferent(deps, records.loadedCreatedAt.get(node), node)) return true;
  return records
    .episodesOf(node)
    .some(({ nodeCreatedAt, replaced }) => replaced !== true && isDifferent(deps, nodeCreatedAt, node));
}

/** Returns the ids that are in the same slot as before, with another `created_at`. */
function changedNodes(previous: CreationTimes, fleet: Fleet): readonly NodeId[] {
  const marks = new Uint8Array(fleet.slots);
  fleet.createdAtMs.markDifferences(previous.createdAtMs, marks);
  const nodes: NodeId[] = [];
  for (let slot = marks.indexOf(1); slot >= 0; slot = marks.indexOf(1, slot + 1))
    if (isChanged(previous, fleet, slot)) nodes.push(fleet.ids[slot]!);
  return nodes;
}

/**
 * Journals when `created_at` was last found not to identify nodes, so that a restart does not treat all nodes as
 * replaced.
 */
function recordChangingCreatedAt(state: RemediationState, now: MonotonicMs): void {
  const known = state.records.fact(CHANGING_CREATED_AT_FACT);
  const age = state.now() - Number(known ?? Number.NEGATIVE_INFINITY);
  const value = state.identities.changes.areTooMany(now) ? String(state.now()) : null;
  const isDue = value === null ? age > DAY_MS : age > REWRITE_MS;
  if (isDue && value !== known) state.record([{ kind: "fact", key: CHANGING_CREATED_AT_FACT, value }]);
}

/** Returns the number of nodes whose `created_at` is known. */
const countKnown = ({ createdAtMs }: Fleet): number => createdAtMs.toArray().filter((at) => !Number.isNaN(at)).length;

function isDifferent({ observed, remediationState }: IdentityDeps, known: EpochMs | undefined, node: NodeId): boolean {
  const current = observed.createdAtOf(node);
  if (known === undefined || current === null) return false;
  const { changes } = remediationState.identities;
  return changes.identifies(node, observed.latest!.snapshot.at) && differ(known, current);
}

/** Returns whether two creation times are those of different nodes. An unknown one, which is NaN, shows nothing. */
const differ = (one: EpochMs, other: EpochMs): boolean => Math.abs(one - other) > CREATED_AT_TOLERANCE_MS;

/**
 * Records `created_at` in open episodes once it is known. The id of a suspended one may already belong to another node.
 */
function recordCreatedAt({ observed, remediationState }: IdentityDeps): void {
  const changes = remediationState.records.openEpisodes().flatMap((row): JournalChange[] => {
    const nodeCreatedAt = row.state === "suspended" ? null : observed.createdAtOf(row.node);
    if (row.nodeCreatedAt !== undefined || nodeCreatedAt === null) return [];
    return [{ kind: "episode", row: { ...row, nodeCreatedAt } }];
  });
  if (changes.length > 0) remediationState.record(changes);
}

/** Returns whether a slot has the same id but another node. */
const isChanged = (previous: CreationTimes, current: CreationTimes, slot: number): boolean =>
  differ(previous.createdAtMs.at(slot), current.createdAtMs.at(slot)) && previous.ids[slot] === current.ids[slot];

/**
 * Drops what the journal holds about the previous node of an id. Open episodes are withdrawn, because they may have
 * begun on the previous node, but those with the current `created_at` still count as attempts. So do all others if we
 * rebooted the node recently, or `created_at` changes often: a service that registers a node again with each boot, or
 * states the time of the request, would otherwise have it acted on without limit. While a node is rebooting because of
 * us, its step stays in flight, and its timer lapses.
 */
export function forgetReplacedNode(context: EpisodeContext & IdentityDeps, node: NodeId): void {
  const { observed, remediationState } = context;
  const { records } = remediationState;
  const [slot, createdAt] = [observed.slotOf(node), observed.createdAtOf(node)];
  const isOurReboot = createdAt !== null && wasRebootedByUs(records, node, remediationState.now());
  const isRebooting = isOurReboot && slot !== null && observed.statusAt(slot) === "rebooting";
  for (const episode of records.openEpisodesOf(node)) {
    if (isRebooting && episode.state === "acting") {
      remediationState.record([records.setTimer(episode.policy, node, lapsedTimer(remediationState.now()), createdAt)]);
      continue;
    }
    withdraw(context, episode, "the id belongs to another node: its created_at differs");
    discardProof(remediationState, episode);
  }
  const episodes = otherEpisodes(context, node);
  const fields = { node, episodes: episodes.length };
  if (createdAt !== null && (isOurReboot || remediationState.identities.changes.isFrequent(node))) {
    adoptCreatedAt(remediationState, episodes, createdAt);
    const cause = isOurReboot ? "after a reboot by the daemon" : "too often";
    context.log.warn(fields, `created_at changed ${cause}; earlier attempts and holds still count`);
    return;
  }
  const dropped = records.holdsOn(node).filter(({ kind }) => kind !== "held");
  remediationState.record([
    ...episodes.map((episode): JournalChange => ({ kind: "episode", row: { ...episode, replaced: true } })),
    ...dropped.map(({ policy }): JournalChange => ({ kind: "hold_gone", node, policy })),
  ]);
  context.log.warn(fields, "the id belongs to another node; the state of the previous one is dropped");
}

/** Makes a policy unproven if only actions of this episode were verified: its node was not healed, but replaced. */
function discardProof(state: RemediationState, { id, policy }: Episode): void {
  const { records } = state;
  const key = canaryFactKey(policy);
  const proving = [...records.actions()].filter(
    ({ policy: name, dryRun, outcome, fingerprint }) =>
      name === policy && !dryRun && outcome === "verified" && fingerprint === records.fact(key),
  );
  if (proving.length > 0 && proving.every(({ episode }) => episode === id))
    state.record([{ kind: "fact", key, value: null }]);
}

/** Returns the episodes of a node whose `created_at` differs from the current one, or either of which is unknown. */
function otherEpisodes({ observed, remediationState: { records } }: IdentityDeps, node: NodeId): readonly Episode[] {
  const createdAt = observed.createdAtOf(node) ?? Number.NaN;
  return records
    .episodesOf(node)
    .filter(({ nodeCreatedAt = Number.NaN }) => !(Math.abs(nodeCreatedAt - createdAt) <= CREATED_AT_TOLERANCE_MS));
}

/** Gives episodes the new `created_at` of their node. */
const adoptCreatedAt = (state: RemediationState, episodes: readonly Episode[], nodeCreatedAt: EpochMs): void =>
  state.record(episodes.map((episode) => ({ kind: "episode", row: { ...episode, nodeCreatedAt } })));

/**
 * Returns whether the new `created_at` of an id is the time of a boot that we caused, so that the id still belongs to
 * the same node. This is the case if the service states boot times, the boot followed our reboot within an hour, and
 * the node has the same name and was on the list all the time.
 */
function isOurBoot({ observed, remediationState, client }: IdentityDeps, node: NodeId): boolean {
  const { records } = remediationState;
  const { at } = observed.latest!.snapshot;
  const serviceNow = client.serviceTime(at);
  const createdAt = observed.createdAtOf(node);
  if (serviceNow === null || createdAt === null) return false;
  const bootedAt = createdAt - serviceNow + remediationState.epochOf(at);
  return (
    ownActions(records, node, ({ nodeName }) => nodeName === observed.nameOf(node)).some(
      (action) => isRecentReboot(action, bootedAt) && action.sentAt! <= bootedAt + CLOCK_TOLERANCE_MS,
    ) && statesBootTimes(observed, serviceNow - at)
  );
}

/**
 * Returns whether the `created_at` of online nodes is the time of their boot, which `uptime_hours` gives to the hour.
 * `offsetMs` is how far the service's clock is ahead of the monotonic clock.
 */
function statesBootTimes(observed: IdentityDeps["observed"], offsetMs: DurationMs): boolean {
  const { ids, listedAt, uptimeHours, createdAtMs, slots } = observed.fleet;
  let [compared, same] = [0, 0];
  for (let slot = 0; slot < slots; slot++) {
    if (ids[slot] === "" || observed.statusAt(slot) !== "online") continue;
    const differenceMs = listedAt.at(slot) + offsetMs - uptimeHours.at(slot) * HOUR_MS - createdAtMs.at(slot);
    if (Number.isNaN(differenceMs)) continue;
    compared++;
    if (Math.abs(differenceMs) <= HOUR_MS + CLOCK_TOLERANCE_MS) same++;
  }
  return compared >= COMPARED_NODES_MIN && same >= compared * BOOT_TIME_SHARE_MIN;
}
