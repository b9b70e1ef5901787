import { formatDuration, formatSecondsLeft } from "../../base/duration.ts";
import { countNoun } from "../../base/text.ts";
import type { Blocker, Episode } from "../../model/remediation/episode.ts";
import { endedAt, givenUpHold, releasedAt } from "../episodes/attempts.ts";
import { isLost } from "../episodes/episode-states.ts";
import { isDryRun } from "../policy.ts";
import { type Candidate, defineGuard, defineSimpleGuard, type GuardFacts, nextStep } from "./guard-types.ts";

const GIVEN_UP = "ProxywardenNodeGivenUp";

/**
 * Enforces a minimum time between two episodes of a node, under any policy. Episodes of an earlier node with the same id
 * count too: what seems to be another node may be the same one, because `created_at` may change for other reasons.
 */
export const cooldownGuard = defineSimpleGuard({
  reason: "cooldown",
  counts: "the time since the last episode of the node",
  condition: "it is shorter than `safety.cooldown`",
  ends: "automatically, after `safety.cooldown`",
  preventsEpisode: true,
  alert: null,
  appliesToNotify: true,
  details: (candidate, { records, now, safety }) => {
    if ((candidate.episode?.acted ?? 0) > 0) return [];
    const { node, active, episode } = candidate;
    const closed = records.closedEpisodesOfId(node.id, isDryRun(active));
    // Their steps are over, although they stay open until the node is available again.
    const lost = records.openEpisodesOf(node.id, isDryRun(active)).filter((each) => isLost(each) && each !== episode);
    const last = [...closed, ...lost].toSorted((a, b) => endedAt(a) - endedAt(b)).at(-1);
    const left = last === undefined ? 0 : endedAt(last) + safety.cooldownMs - now;
    if (last === undefined || left <= 0) return [];
    return [`${last.id} ended ${formatSecondsLeft(now - endedAt(last))} ago; ${formatSecondsLeft(left)} left`];
  },
});

/** Limits how often a policy treats a node, and holds a node that the policy has given up. */
export const retryGuard = defineGuard({
  reasons: {
    retry_wait: {
      counts: "the time since an episode in which the policy gave up",
      condition: "it is shorter than `retry.every`",
      ends: "automatically, after `retry.every`",
      operatorAction: "check the node: the policy did not heal it",
      alert: GIVEN_UP,
      preventsEpisode: true,
    },
    retry_limit: {
      counts: "episodes of the node under the policy",
      condition:
        "there were `retry.episodes` within `retry.forget_after`, or that many in a row did not heal the node, so it is given up",
      ends: "automatically, once enough episodes are older than `retry.forget_after`; if the node is given up, once it is healthy, or with `release`",
      operatorAction: "repair or replace the node: the policy does not heal it",
      alert: GIVEN_UP,
      preventsEpisode: true,
    },
  },
  appliesToNotify: true,
  check: (candidate, facts) => {
    const { node, active } = candidate;
    const { name, retry, steps } = active.policy.spec;
    const blockers: Blocker<"retry_limit" | "retry_wait">[] = [];
    // After a change the policy may have fewer steps than the episode has taken.
    if (nextStep(candidate) === null) {
      const detail = `the episode has taken all ${steps.length} steps of the policy: given up`;
      blockers.push({ reason: "retry_limit", detail });
    }
    if ((candidate.episode?.acted ?? 0) > 0) return blockers;
    const givenUp = isDryRun(active) ? null : givenUpHold(facts.records, node.id, name);
    if (givenUp !== null) {
      const end = `the hold ends when the node is healthy, or with "release ${node.id}"`;
      return [...blockers, { reason: "retry_limit", detail: `given up: ${givenUp.reason}; ${end}` }];
    }
    const past = previousEpisodes(candidate, facts);
    if (past.length >= retry.episodes) {
      const oldest = past[past.length - retry.episodes];
      const end =
        oldest === undefined
          ? "none is allowed"
          : `the next in ${formatSecondsLeft(oldest.closedAt! + retry.forgetAfterMs - facts.now)}`;
      const detail = `${countNoun(past.length, "episode")} within ${formatDuration(retry.forgetAfterMs)}; the limit is ${retry.episodes}; ${end}`;
      blockers.push({ reason: "retry_limit", detail });
    }
    const failed = past.filter(({ state }) => state === "given_up").at(-1);
    const left = (failed?.closedAt ?? Number.NEGATIVE_INFINITY) + retry.everyMs - facts.now;
    if (failed !== undefined && left > 0) {
      blockers.push({
        reason: "retry_wait",
        detail: `${failed.id} did not heal it; the next attempt in ${formatSecondsLeft(left)}`,
      });
    }
    return blockers;
  },
});

/** Delays the next attempt at a step that was not executed. */
export const backoffGuard = defineSimpleGuard({
  reason: "backoff",
  counts: "attempts at the step that were not executed",
  condition: "the delay after the last one has not passed",
  ends: "automatically, after 1 s to 23 min, or after Retry-After",
  appliesToNotify: true,
  details: ({ episode }, { now, records }) => {
    if (episode === null || episode.retryAt === null || episode.retryAt <= now) return [];
    const last = records
      .actionsOf(episode.id)
      .findLast(({ step, detail: problem }) => step === episode.step && problem !== null);
    const why = last?.detail == null ? "" : ` (${last.detail})`;
    return [`${backoffCause(episode)}${why}; the next in ${formatSecondsLeft(episode.retryAt - now)}`];
  },
});

function backoffCause({ failures, limited = 0 }: Episode): string {
  if (failures === 0) return "the service answered 429";
  const attempts = failures + limited;
  return attempts === 1 ? "the last attempt was not executed" : `${attempts} attempts in a row were not executed`;
}

function previousEpisodes({ active, node, episode }: Candidate, { records, now }: GuardFacts): readonly Episode[] {
  const { name, retry } = active.policy.spec;
  const after = Math.max(now - retry.forgetAfterMs, isDryRun(active) ? 0 : releasedAt(records, node.id, name));
  return records
    .closedEpisodesOf(node.id, isDryRun(active))
    .filter((past) => past.policy === name && past.id !== episode?.id && past.closedAt! > after);
}

/** The guards that depend on earlier attempts. */
export const RETRY_GUARDS = [cooldownGuard, retryGuard, backoffGuard];
