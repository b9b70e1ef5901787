import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { NodeId, NodeStatus } from "../model/node.ts";
import type { Action, Episode } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";
import type { RemediationRecords } from "./remediation-records.ts";

/** Time for which a reboot that we sent explains a rebooting node or a lower uptime. */
const OWN_REBOOT_MS: DurationMs = HOUR_MS;

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
