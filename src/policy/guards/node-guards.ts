import { formatSecondsLeft } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Action, Blocker, Episode, NodeHold } from "../../model/remediation/episode.ts";
import { isRecentReboot, ownQuarantine, wasRebootedByUs } from "../episodes/attempts.ts";
import { isLost } from "../episodes/episode-states.ts";
import { isDryRun } from "../policy.ts";
import { type Candidate, defineGuard, defineSimpleGuard, type GuardFacts, type HoldReasonRow } from "./guard-types.ts";

const OWNERSHIP: HoldReasonRow = {
  counts: "actions on the node that the daemon did not take",
  condition:
    "it is in a quarantine that the daemon did not start or that is overdue, or it was rebooted in the last 15 minutes, but not by the daemon",
  ends: "automatically, 15 minutes after the quarantine or reboot was last seen (an overdue quarantine by the daemon: as soon as it ends), or with `release`, but not while the quarantine lasts",
  operatorAction: "check that no second daemon or script acts on this fleet",
};

/** Holds nodes that `safety.protected` matches, and nodes for which the expression is unknown. */
export const protectedGuard = defineSimpleGuard({
  reason: "protected",
  counts: "the expression `safety.protected`",
  condition: "it is true for the node, or unknown",
  ends: "automatically, once the expression is false, or with a change to `safety.protected`",
  details: ({ node }) => {
    if (node.protected === "false") return [];
    return node.protected === "true"
      ? ["the node is protected by safety.protected"]
      : ["the fields that safety.protected reads are unknown"];
  },
});

/** Holds nodes that an operator holds or vetoed, and nodes that another client or an operator acted on recently. */
export const holdGuard = defineGuard({
  reasons: {
    held: {
      counts: "operator commands",
      condition: "an operator holds the node",
      ends: "with `release`, or after the duration given with `--for`",
      operatorAction: "`release` once the node may be acted on",
    },
    vetoed: {
      counts: "quarantines by the daemon that an operator lifted",
      condition: "one was lifted less than `retry.every` ago",
      ends: "automatically, after `retry.every`, or with `release`",
    },
    ownership: OWNERSHIP,
  },
  check: (candidate, facts) => {
    const { node, active } = candidate;
    const { records, now } = facts;
    // The status guard already reports a quarantine that is not ours.
    const isReported = statusBlockers(candidate, facts).some(({ reason }) => reason === "ownership");
    return records
      .holdsOn(node.id)
      .flatMap(withOwnership)
      .filter(
        ({ policy, until }) => (policy === null || policy === active.policy.spec.name) && (until ?? now + 1) > now,
      )
      .flatMap(({ kind, reason, until }) => {
        if (kind === "given_up" || (kind === "ownership" && isReported)) return [];
        const end = until === null ? "" : `; for another ${formatSecondsLeft(until - now)}`;
        return [{ reason: kind, detail: `${reason}${end}` }];
      });
  },
});

/** Returns a hold and the one of kind `ownership` that it has in addition, which may last longer. */
export function withOwnership(hold: NodeHold): readonly NodeHold[] {
  const { node, policy, ownership } = hold;
  return ownership === undefined ? [hold] : [hold, { node, policy, kind: "ownership", ...ownership }];
}

/** Holds nodes on which an operator, the service or another policy is acting. */
export const statusGuard = defineGuard({
  reasons: {
    status: {
      counts: "the status of the node",
      condition:
        "it is in maintenance or of unknown status; it is rebooting, but this policy did not reboot it; or the daemon has quarantined it under another policy, or in a step that is over",
      ends: "automatically, when the status changes",
      operatorAction: "if it does not change, end the maintenance or repair the node by hand",
    },
    ownership: OWNERSHIP,
  },
  check: statusBlockers,
});

function statusBlockers({ node, episode }: Candidate, facts: GuardFacts): readonly Blocker<"status" | "ownership">[] {
  if (node.status === "maintenance") return [{ reason: "status", detail: "it is in maintenance" }];
  if (node.status === "unknown") return [{ reason: "status", detail: "its status is unknown" }];
  if (node.status === "rebooting") return rebootBlockers(node.id, episode, facts);
  return node.status === "quarantined" ? quarantineBlockers(node.id, episode, facts) : [];
}

/** Returns blockers unless this episode rebooted the node. */
function rebootBlockers(node: NodeId, episode: Episode | null, facts: GuardFacts): readonly Blocker<"status">[] {
  if (sentReboot(episode, facts) !== null) return [];
  const reboot = sentReboot(facts.records.openEpisode(node, false), facts);
  if (reboot !== null)
    return [{ reason: "status", detail: `it is being rebooted by ${reboot.id} (policy ${reboot.policy})` }];
  const cause = wasRebootedByUs(facts.records, node, facts.now)
    ? "after an action of the daemon"
    : "not caused by an action of the daemon";
  return [{ reason: "status", detail: `the node is rebooting, ${cause}` }];
}

const sentReboot = (episode: Episode | null, { records, now }: GuardFacts): Action | null =>
  (episode === null ? [] : records.actionsOf(episode.id)).findLast((action) => isRecentReboot(action, now)) ?? null;

/** Returns blockers unless the quarantine is that of this episode and has not ended by the journal's clock. */
function quarantineBlockers(
  node: NodeId,
  episode: Episode | null,
  { now, records }: GuardFacts,
): readonly Blocker<"status" | "ownership">[] {
  const quarantine = episode?.quarantine ?? null;
  if (quarantine === null) {
    const real = records.openEpisode(node, false);
    const isOurs = real !== null && real.quarantine !== null && now < real.quarantine.endsAt;
    if (isOurs) return [{ reason: "status", detail: `it is quarantined by ${real.id} (policy ${real.policy})` }];
    const late = ownQuarantine(records, node, now);
    return late === null
      ? [{ reason: "ownership", detail: "the node is in a quarantine that the daemon did not start" }]
      : [{ reason: "status", detail: `it is quarantined, probably by ${late.id}, whose step or episode is over` }];
  }
  if (now < quarantine.endsAt) return [];
  const detail = `the daemon's quarantine should have ended ${formatSecondsLeft(now - quarantine.endsAt)} ago, but the node is still quarantined`;
  return [{ reason: "ownership", detail }];
}

/**
 * Holds a node that has an open episode of another policy, because a node has one episode at a time, and a node that an
 * episode of the policy has left down after its last step.
 */
export const otherEpisodeGuard = defineSimpleGuard({
  reason: "other_episode",
  counts: "open episodes of the node",
  condition: "another policy has one, or an episode of this policy has left the node down after its last step",
  ends: "automatically, once that episode ends or is suspended; if the node is down, once it is available again, or with `accept-inventory`",
  operatorAction: "if a node that is down will not come back, `accept-inventory`",
  preventsEpisode: true,
  appliesToNotify: true,
  details: ({ active, node, episode }, { records }) => {
    const { name, steps } = active.policy.spec;
    const details: string[] = [];
    const open = records.openEpisode(node.id, isDryRun(active));
    if (open !== null && open.id !== episode?.id)
      details.push(`the node is in ${open.id} of the policy ${open.policy}`);
    const lost = records.suspendedEpisode(name, node.id, isDryRun(active));
    if (lost !== null && isLost(lost) && lost.step >= steps.length)
      details.push(
        `${lost.id} has left the node down, and no step is left; it ends once the node is available again, or with accept-inventory`,
      );
    return details;
  },
});

/** The guards that depend on the node. */
export const NODE_GUARDS = [protectedGuard, holdGuard, statusGuard, otherEpisodeGuard];
