import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../base/duration.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import type { Safety } from "../../config/schema/safety.ts";
import type { NodeId, NodeStatus } from "../../model/node.ts";
import type { Action, Episode, NodeHold } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { RemediationRecords } from "../remediation-records.ts";

/** Time for which a reboot that we sent explains a rebooting node or a lower uptime. */
const OWN_REBOOT_MS: DurationMs = HOUR_MS;

/** Returns when an episode closed or its node was lost. */
export const endedAt = ({ closedAt, stateAt }: Episode): EpochMs => closedAt ?? stateAt;

/** Returns the hold of a node that a policy has given up, or null if there is none. */
export function givenUpHold(records: RemediationRecords, node: NodeId, policy: string): NodeHold | null {
  const hold = records.hold(node, policy);
  return hold?.kind === "given_up" && hold.until === null ? hold : null;
}

/**
 * Returns whether a policy has given up on a node, or gave up its last episode on the node since the timer began. False
 * while an episode on the node is open and not suspended.
 */
export function isGivenUp(records: RemediationRecords, policy: string, node: NodeId, dryRun: boolean): boolean {
  if (records.openEpisode(node, dryRun) !== null) return false;
  const last = records.closedEpisodesOf(node, dryRun).findLast((episode) => episode.policy === policy);
  const since = records.timer(policy, node).since ?? Number.POSITIVE_INFINITY;
  const isLastGivenUp = last?.state === "given_up" && (last.closedAt ?? 0) >= since;
  // The hold outlasts the episodes in memory.
  return isLastGivenUp || (!dryRun && givenUpHold(records, node, policy) !== null);
}

/** Returns when an operator released a node that a policy had given up, or 0 if never. Earlier attempts don't count. */
export function releasedAt(records: RemediationRecords, node: NodeId, policy: string): EpochMs {
  const hold = records.hold(node, policy);
  return (hold?.kind === "given_up" ? hold.until : hold?.releasedAt) ?? 0;
}

/**
 * Returns the ids of the latest consecutive real episodes in which a policy did not heal a node, oldest first. They are
 * consecutive if none begins later than `retry.forget_after` after the end of the one before. An episode that begins at
 * `now` would be the next one. Each episode names those before it, which may no longer be in memory.
 */
export function consecutiveFailures(
  records: RemediationRecords,
  node: NodeId,
  { name, retry }: PolicySpec,
  now: EpochMs,
): readonly string[] {
  const last = records.closedEpisodesOf(node, false).findLast((episode) => episode.policy === name);
  if (last?.state !== "given_up" || last.closedAt! <= releasedAt(records, node, name)) return [];
  return now - last.closedAt! > retry.forgetAfterMs ? [] : [...(last.failedBefore ?? []), last.id];
}

/**
 * Measures how many of the nodes that a policy treated most recently, at most `safety.efficacy.window`, were healed, and
 * whether these are too few. For each node it counts the last real episode under this version of the policy that has
 * acted and closed after `since`, or whose node is lost. Episodes that ended because of an operator or a change to the
 * policy don't count.
 */
export function measureEfficacy(
  episodes: Iterable<Episode>,
  { policy, fingerprint, since }: { readonly policy: string; readonly fingerprint: string; readonly since: EpochMs },
  { window, minSuccess }: Safety["efficacy"],
) {
  const counted = [...episodes]
    .filter(
      (episode) =>
        episode.policy === policy && episode.fingerprint === fingerprint && !episode.dryRun && episode.acted > 0,
    )
    .filter(({ repaired }) => repaired !== true)
    .filter(({ state }) => state === "healed" || state === "cleared" || state === "given_up" || state === "suspended")
    .filter((episode) => endedAt(episode) > since)
    .sort((a, b) => endedAt(a) - endedAt(b));
  const lastOfNode = new Map<NodeId, Episode>();
  for (const episode of counted) {
    // Deleted first, so that the map is ordered by the last treatment.
    lastOfNode.delete(episode.node);
    lastOfNode.set(episode.node, episode);
  }
  const last = [...lastOfNode.values()].slice(-window);
  const healed = last.filter(({ state }) => state === "healed").length;
  const isTooLow = window > 0 && last.length >= window && healed < minSuccess * last.length - 1e-9;
  return { nodes: last.length, healed, isTooLow };
}

/** Returns our actions on a node under any policy, of the episodes for which `isIncluded` returns true. */
export const ownActions = (
  records: RemediationRecords,
  node: NodeId,
  isIncluded: (episode: Episode) => boolean = () => true,
): readonly Action[] =>
  records
    .episodesOf(node, false)
    .filter(isIncluded)
    .flatMap(({ id }) => records.actionsOf(id));

/** Returns whether an action is being sent, or was sent and is not yet verified. */
export const isInFlight = ({ state }: Action): boolean => state === "posting" || state === "sent";

/** Returns whether the service may have executed an action. */
const mayBeExecuted = ({ sentAt, outcome }: Action): boolean =>
  sentAt !== null && outcome !== "failed" && outcome !== "refused";

/** Returns whether an action is a reboot that may have been executed recently. */
export const isRecentReboot = (action: Action, now: EpochMs): boolean =>
  action.request.kind === "reboot" && mayBeExecuted(action) && now - action.sentAt! <= OWN_REBOOT_MS;

/** Returns whether we rebooted a node recently, under any policy. */
export const wasRebootedByUs = (records: RemediationRecords, node: NodeId, now: EpochMs): boolean =>
  ownActions(records, node).some((action) => isRecentReboot(action, now));

/**
 * Returns our last quarantine that may be in effect on a node, under any policy, unless an operator lifted it; null if
 * there is none.
 */
export const ownQuarantine = (records: RemediationRecords, node: NodeId, now: EpochMs): Action | null =>
  ownActions(records, node, ({ state }) => state !== "freed").findLast((action) => isQuarantineUntil(action, now)) ??
  null;

/**
 * Returns whether a node has its status because of an action of ours whose step is over: the service may execute an
 * action long after it answered. A node that was down before the action is not counted, nor is one whose quarantine an
 * operator lifted.
 */
export function isLateEffect(records: RemediationRecords, action: Action, status: NodeStatus, now: EpochMs): boolean {
  const { node, episode, statusBefore, dryRun } = action;
  if (dryRun || statusBefore === "offline" || statusBefore === "rebooting") return false;
  const isEffect =
    status === "rebooting"
      ? isRecentReboot(action, now)
      : (status === "quarantined" || status === "maintenance") && isQuarantineUntil(action, now);
  if (!isEffect || records.episode(episode)?.state === "freed") return false;
  const episodes = records.episodesOf(node, false);
  // The quarantine of an open episode is counted with the episode.
  const isCounted = episodes.some(({ closedAt, quarantine }) => closedAt === null && quarantine !== null);
  return !isCounted && episodes.some(({ id }) => id === episode);
}

/** Returns whether an action is a quarantine that may have been executed and lasts longer than `at`. */
const isQuarantineUntil = (action: Action, at: EpochMs): boolean =>
  action.request.kind === "quarantine" &&
  mayBeExecuted(action) &&
  action.sentAt! + action.request.durationMinutes * MINUTE_MS > at;
