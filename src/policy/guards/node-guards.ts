import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { Candidate, Guard } from "../candidate.ts";
import { countsAsAttempt, givenUpHold, releasedAt } from "../episodes/retries.ts";
import { type GuardFacts, isDryRun, isRecentReboot, wasRebootedByUs } from "../facts.ts";

/** A node that safety.protected names, or of which that can't be said, is not touched. */
export const protectedGuard: Guard = ({ node }) => {
  if (node.protected === "false") return [];
  const detail =
    node.protected === "true"
      ? "the node is protected by safety.protected"
      : "the fields that safety.protected reads are unknown";
  return [{ reason: "protected", detail }];
};

/** Operators can hold a node. Lifting our quarantine early counts as a veto against the policy. */
export const holdGuard: Guard = (candidate, facts) => {
  const { node, active } = candidate;
  const { records, now } = facts;
  // The guard of the status names a quarantine by others itself.
  const isReported = statusGuard(candidate, facts).some(({ reason }) => reason === "ownership");
  return records
    .holdsOn(node.id)
    .filter(({ policy, until }) => (policy === null || policy === active.policy.rule.name) && (until ?? now + 1) > now)
    .filter(({ kind }) => kind !== "ownership" || !isReported)
    .flatMap(({ kind, ...hold }) => (kind === "given_up" ? [] : [{ kind, ...hold }]))
    .map(({ kind, reason, until }) => ({
      reason: kind,
      detail: until === null ? reason : `${reason}; for another ${formatSecondsLeft(until - now)}`,
    }));
};

/** A node that an operator, the service or another policy of ours works on is left alone. */
export const statusGuard: Guard = ({ node, episode }, facts) => {
  if (node.status === "maintenance") return [{ reason: "status", detail: "it is in maintenance" }];
  if (node.status === "unknown") return [{ reason: "status", detail: "its status is unknown" }];
  if (node.status === "rebooting")
    return rebootBlockers(node.id, episode, facts.records.openEpisode(node.id, false), facts);
  return node.status === "quarantined"
    ? quarantineBlockers(episode, facts.records.openEpisode(node.id, false), facts)
    : [];
};

/** A reboot is expected where the episode sent one. `real`: the open episode of the node that is no dry run. */
function rebootBlockers(
  node: NodeId,
  episode: Episode | null,
  real: Episode | null,
  facts: GuardFacts,
): readonly Blocker[] {
  if (sentReboot(episode, facts) !== null) return [];
  const ours = sentReboot(real, facts);
  if (ours !== null) {
    return [{ reason: "status", detail: `it is rebooting for ${ours.id} of the policy ${ours.policy}` }];
  }
  const whose = wasRebootedByUs(facts.records, node, facts.now)
    ? "after one of our actions"
    : "not caused by one of our actions";
  return [{ reason: "status", detail: `the node is rebooting, ${whose}` }];
}

const sentReboot = (episode: Episode | null, { records, now }: GuardFacts): Action | null =>
  (episode === null ? [] : records.actionsOf(episode.id)).findLast((action) => isRecentReboot(action, now)) ?? null;

/** A quarantine is ours until its time is over, on the journal's clock. One that lasts longer is reported, and the node is not acted on. */
function quarantineBlockers(episode: Episode | null, real: Episode | null, { now }: GuardFacts): readonly Blocker[] {
  const quarantine = episode?.quarantine ?? null;
  if (quarantine === null) {
    const isOurs = real !== null && real.quarantine !== null && now < real.quarantine.endsAt;
    if (!isOurs)
      return [{ reason: "ownership", detail: "the node is in a quarantine that this daemon did not create" }];
    return [{ reason: "status", detail: `it is in our quarantine of ${real.id} of the policy ${real.policy}` }];
  }
  if (now < quarantine.endsAt) return [];
  const detail = `our quarantine should have ended ${formatSecondsLeft(now - quarantine.endsAt)} ago, but the node is still quarantined`;
  return [{ reason: "ownership", detail }];
}

/** One episode a node at a time: the first policy in order has it. */
export const otherEpisodeGuard: Guard = ({ active, node, episode }, { records }) => {
  const open = records.openEpisode(node.id, isDryRun(active));
  if (open === null || open.id === episode?.id) return [];
  return [{ reason: "other_episode", detail: `${open.id} of the policy ${open.policy} has it` }];
};

/** Between two episodes of a node some time passes, whichever policies they are of. */
export const cooldownGuard: Guard = (candidate, { records, now, safety }) => {
  if ((candidate.episode?.acted ?? 0) > 0) return [];
  const last = records.closedEpisodesOf(candidate.node.id, isDryRun(candidate.active)).filter(countsAsAttempt).at(-1);
  const left = (last?.closedAt ?? Number.NEGATIVE_INFINITY) + safety.cooldownMs - now;
  if (last === undefined || left <= 0) return [];
  return [
    {
      reason: "cooldown",
      detail: `${last.id} ended ${formatSecondsLeft(now - last.closedAt!)} ago; ${formatSecondsLeft(left)} to go`,
    },
  ];
};

/** A policy that does not heal a node waits, then gives it up; and it begins only so many episodes within a time. */
export const retryGuard: Guard = (candidate, facts) => {
  if ((candidate.episode?.acted ?? 0) > 0) return [];
  const { node, active } = candidate;
  const { name, retry } = active.policy.rule;
  const givenUp = isDryRun(active) ? null : givenUpHold(facts.records, node.id, name);
  if (givenUp !== null) {
    const end = `the hold ends when the node is seen healthy, or with "release ${node.id}"`;
    return [{ reason: "retry_limit", detail: `given up: ${givenUp.reason}; ${end}` }];
  }
  const past = previousEpisodes(candidate, facts);
  const blockers: Blocker[] = [];
  if (past.length >= retry.episodes) {
    const oldest = past[past.length - retry.episodes];
    const end =
      oldest === undefined
        ? "none is allowed"
        : `the next in ${formatSecondsLeft(oldest.closedAt! + retry.forgetAfterMs - facts.now)}`;
    const detail = `${past.length} episodes within ${formatDuration(retry.forgetAfterMs)}, of ${retry.episodes} allowed; ${end}`;
    blockers.push({ reason: "retry_limit", detail });
  }
  const failed = past.filter(({ state }) => state === "given_up").at(-1);
  const left = (failed?.closedAt ?? Number.NEGATIVE_INFINITY) + retry.everyMs - facts.now;
  if (failed !== undefined && left > 0) {
    blockers.push({
      reason: "retry_wait",
      detail: `${failed.id} did not heal it; the next try in ${formatSecondsLeft(left)}`,
    });
  }
  return blockers;
};

/** A step that could not be sent is not tried again at once, nor one that the service did not want yet. */
export const backoffGuard: Guard = ({ episode }, { now }) => {
  if (episode === null || episode.retryAt === null || episode.retryAt <= now) return [];
  const why =
    episode.failures === 0 ? "the service sent Retry-After" : `${episode.failures} attempts in a row were not sent`;
  const detail = `${why}; the next in ${formatSecondsLeft(episode.retryAt - now)}`;
  return [{ reason: "backoff", detail }];
};

function previousEpisodes({ active, node, episode }: Candidate, { records, now }: GuardFacts): readonly Episode[] {
  const { name, retry } = active.policy.rule;
  const after = Math.max(now - retry.forgetAfterMs, isDryRun(active) ? 0 : releasedAt(records, node.id, name));
  return records
    .closedEpisodesOf(node.id, isDryRun(active))
    .filter(
      (past) => past.policy === name && past.id !== episode?.id && countsAsAttempt(past) && past.closedAt! > after,
    );
}
