import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { NodeId, NodeStatus } from "../model/node.ts";
import type { Action } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";
import type { RemediationRecords } from "./remediation-records.ts";

/** Time for which a reboot that we sent explains a rebooting node or a lower uptime. */
const OWN_REBOOT_MS: DurationMs = HOUR_MS;

/** Returns whether an action is a reboot that may have been executed recently. */
export const isRecentReboot = ({ request, sentAt, outcome }: Action, now: EpochMs): boolean =>
  request.kind === "reboot" &&
  sentAt !== null &&
  now - sentAt <= OWN_REBOOT_MS &&
  outcome !== "failed" &&
  outcome !== "refused";

/** Returns whether we rebooted a node recently, under any policy. */
export function wasRebootedByUs(records: RemediationRecords, node: NodeId, now: EpochMs): boolean {
  return records
    .episodesOf(node, false)
    .flatMap(({ id }) => records.actionsOf(id))
    .some((action) => isRecentReboot(action, now));
}

/**
 * Returns whether a node that is rebooting or quarantined is so because of an action of ours whose step is over: the
 * service may execute an action long after it answered. A node that was down before the action is not counted.
 */
export function isLateEffect(records: RemediationRecords, node: NodeId, status: NodeStatus, now: EpochMs): boolean {
  const episodes = records.episodesOf(node, false);
  // The quarantine of an open episode is counted with the episode.
  if (episodes.some(({ closedAt, quarantine }) => closedAt === null && quarantine !== null)) return false;
  return episodes
    .flatMap(({ id }) => records.actionsOf(id))
    .filter(({ statusBefore }) => statusBefore !== "offline" && statusBefore !== "rebooting")
    .some((action) => (status === "rebooting" ? isRecentReboot(action, now) : isQuarantineUntil(action, now)));
}

/** Describes a quarantine that no open episode explains: an action of ours may have taken effect late. */
export function describeQuarantine(records: RemediationRecords, node: NodeId, now: EpochMs): string {
  const actions = records.episodesOf(node, false).flatMap(({ id }) => records.actionsOf(id));
  const late = actions.findLast((action) => isQuarantineUntil(action, now));
  return late === undefined
    ? "the node is in a quarantine that the daemon did not start"
    : `the node is in a quarantine, probably by ${late.id}, whose step or episode is over`;
}

/** Returns whether an action is a quarantine that may have been executed and lasts longer than `at`. */
const isQuarantineUntil = ({ request, sentAt, outcome }: Action, at: EpochMs): boolean =>
  request.kind === "quarantine" &&
  sentAt !== null &&
  sentAt + request.durationMinutes * MINUTE_MS > at &&
  outcome !== "failed" &&
  outcome !== "refused";
