import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import type { NodeStatus } from "../../model/node.ts";
import type { Action, Episode, Quarantine } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { NodeObservation } from "../guards/guard-types.ts";
import { type ActivePolicy, isDryRun } from "../policy.ts";
import { isDown, isUnlisted, transition } from "./episode-states.ts";
import type { StepResult } from "./verification.ts";

/**
 * Delay before another attempt at an action that was not executed; it doubles each time up to the maximum. The maximum
 * shares no factor with usual intervals: if records are updated every 15 min, an attempt every 30 min would always find
 * them equally old.
 */
const SEND_BACKOFF_MS = MINUTE_MS;
const SEND_BACKOFF_MS_MAX = 23 * MINUTE_MS;
/** Delay after the first 429 without Retry-After; it doubles with each. */
const RATE_LIMIT_BACKOFF_MS: DurationMs = SECOND_MS;
/** Maximum number of attempts at one step that are answered with 429 before the episode is given up. */
export const RATE_LIMITED_ATTEMPTS_MAX = 5;
/** A quarantine that ends this early was not lifted: clocks differ, and durations are whole minutes. */
const QUARANTINE_SLACK_MS = MINUTE_MS;
/** A quarantine that lasts this long after its end is overdue. */
const QUARANTINE_OVERDUE_MS = 5 * MINUTE_MS;
/** A quarantine counts as lifted after this many consecutive observations as online, since one may be outdated. */
const FREED_OBSERVATIONS_MIN = 2;

/** Attempt counters at the beginning of a step. */
const NO_ATTEMPTS = { failures: 0, limited: 0, retryAt: null } as const;

/** Returns a new episode. */
export function beginEpisode(active: ActivePolicy, node: NodeObservation, id: string, now: EpochMs): Episode {
  return {
    id,
    policy: active.policy.spec.name,
    node: node.id,
    dryRun: isDryRun(active),
    fingerprint: active.policy.fingerprint,
    country: node.country,
    region: node.region,
    state: "firing",
    stateAt: now,
    openedAt: now,
    closedAt: null,
    step: 0,
    acted: 0,
    ...NO_ATTEMPTS,
    quarantine: null,
    healed: false,
  };
}

/** Closes an episode after `when` was false for `clear_for`. */
export const clearEpisode = (episode: Episode, now: EpochMs): Episode => {
  const recovered = episode.state === "suspended" ? episode.healed : episode.state !== "firing";
  // A node that an operator repaired was not healed by the policy.
  return transition(episode, recovered && episode.repaired !== true ? "healed" : "cleared", now);
};

/** Suspends an episode after its node left the list. Its id may come back as another node. */
export const markUnlisted = (episode: Episode, now: EpochMs): Episode => ({
  ...(episode.state === "suspended" ? episode : transition(episode, "unseen", now)),
  nodeName: null,
  unlistedAt: now,
});

/**
 * Updates an episode after a step was sent, or may have been. `minutes` is the duration of a quarantine, or null if it
 * is the requested one.
 */
export function recordSent(episode: Episode, action: Action, minutes: number | null, now: EpochMs): Episode {
  const quarantine: Quarantine | null =
    action.request.kind !== "quarantine"
      ? episode.quarantine
      : {
          action: action.id,
          endsAt: (action.sentAt ?? now) + (minutes ?? action.request.durationMinutes) * MINUTE_MS,
          // The quarantine of a dry run can't be observed.
          seen: episode.dryRun,
          seenOnline: 0,
          overdue: false,
        };
  const sent = { ...episode, acted: episode.acted + 1, ...NO_ATTEMPTS, quarantine, healed: false, repaired: false };
  return transition(sent, "sent", now);
}

/** Updates an episode after a step was not executed, except for a 429. It is attempted again after a delay. */
export function recordUnsent(episode: Episode, now: EpochMs): Episode {
  const wait = Math.min(SEND_BACKOFF_MS_MAX, SEND_BACKOFF_MS * 2 ** Math.min(episode.failures, 16));
  return transition({ ...episode, failures: episode.failures + 1, retryAt: now + wait }, "unsent", now);
}

/**
 * Updates an episode after a 429. Nothing was executed, and the step is sent again. `retryAfterMs` is the delay that
 * the service asked for. If it is null, the delay starts at 1 s and doubles (spec, section 7.1). After
 * {@link RATE_LIMITED_ATTEMPTS_MAX} attempts the steps end.
 */
export function recordRateLimited(
  episode: Episode,
  retryAfterMs: DurationMs | null,
  spec: PolicySpec,
  now: EpochMs,
): Episode {
  const limited = (episode.limited ?? 0) + 1;
  const wait = retryAfterMs ?? RATE_LIMIT_BACKOFF_MS * 2 ** (limited - 1);
  const next: Episode = { ...episode, limited, retryAt: now + wait };
  if (limited < RATE_LIMITED_ATTEMPTS_MAX) return transition(next, "unsent", now);
  return endSteps(next, spec, now);
}

/**
 * Ends the steps of an episode, because the service refused one or answered it with 429 too often, the result is
 * unknown, or none is left. The episode is given up, but stays quarantined while our quarantine lasts, and is suspended
 * while a step has left its node down.
 */
export function endSteps(before: Episode, spec: PolicySpec, now: EpochMs): Episode {
  const episode = { ...before, step: spec.steps.length };
  if (episode.quarantine !== null) return transition(episode, "quarantined", now);
  if (!isDown(episode)) return transition(episode, "steps_over", now);
  return episode.state === "suspended" ? episode : transition(episode, "unseen", now);
}

/** Updates an episode after a step ended. Only an ineffective step leads to the next one. */
export function recordStepResult(
  episode: Episode,
  action: Action,
  end: StepResult,
  spec: PolicySpec,
  now: EpochMs,
): Episode {
  const isQuarantine = action.request.kind === "quarantine";
  const settled = settleQuarantine(episode, action);
  switch (end) {
    case "verified":
      if (isQuarantine && settled.quarantine !== null) return transition(settled, "quarantined", now);
      return transition({ ...settled, healed: true }, "verified", now);
    case "ineffective":
      return advanceStep(settled, spec, now);
    case "in_doubt":
      return endSteps(settled, spec, now);
    default:
      return end satisfies never;
  }
}

/** Updates an episode whose step timed out while its node was lost. The next step follows when the node returns. */
export function recordStepLost(episode: Episode, action: Action, now: EpochMs): Episode {
  const next = { ...settleQuarantine(episode, action), step: episode.step + 1, ...NO_ATTEMPTS, healed: false };
  return transition(next, "step_lost", now);
}

/** Moves an episode to the next step, or ends its steps if none is left. */
export function advanceStep(episode: Episode, spec: PolicySpec, now: EpochMs): Episode {
  const next = { ...episode, step: episode.step + 1, ...NO_ATTEMPTS, healed: false };
  return next.step < spec.steps.length ? transition(next, "next_step", now) : endSteps(next, spec, now);
}

/** Statuses of a node that is down. */
const DOWN_STATUSES: ReadonlySet<NodeStatus> = new Set(["offline", "rebooting", "unknown"]);

/**
 * Updates `downSince` of an episode from the status of its node, when its last step ends, when its lost node is listed
 * again, or while it recovers from a reboot. A step leaves a node down if the node was neither offline nor rebooting
 * before it, or was down because of an earlier step.
 */
export function observeAfterStep(episode: Episode, action: Action, status: NodeStatus, now: EpochMs): Episode {
  const wasUp = action.statusBefore !== "offline" && action.statusBefore !== "rebooting";
  const mayBeOurs = !episode.dryRun && (wasUp || isDown(episode));
  // When a reboot ends in maintenance, nothing shows that the node came back from it.
  const isUnproven = episode.state === "acting" && action.request.kind === "reboot" && status === "maintenance";
  const isDownNow = mayBeOurs && (isUnproven || DOWN_STATUSES.has(status));
  return isDownNow ? { ...episode, downSince: episode.downSince ?? now } : episode;
}

/**
 * Updates an episode after an observation of the node's status. `clockLagMs` is how far the journal's clock is behind: by
 * that clock, our quarantine may end this much too early.
 */
export function observeStatus(before: Episode, status: NodeStatus, now: EpochMs, clockLagMs: DurationMs = 0): Episode {
  const repairedOrNot = isOperatorRepair(before, status) ? { ...before, repaired: true } : before;
  // A node in quarantine or maintenance may still be down.
  const isUpAgain = isDown(before) && status === "online";
  const episode = isUpAgain ? { ...repairedOrNot, downSince: null } : repairedOrNot;
  const { quarantine } = episode;
  if (quarantine === null) return episode;
  // The spec does not state which status a quarantine has (section 3.1), so it may also be maintenance from the first.
  const { seen, asMaintenance = !seen && status === "maintenance" && now < quarantine.endsAt } = quarantine;
  if (status === "quarantined" || (status === "maintenance" && asMaintenance)) {
    const overdue = now > quarantine.endsAt + QUARANTINE_OVERDUE_MS;
    if (seen && quarantine.seenOnline === 0 && quarantine.overdue === overdue) return episode;
    return { ...episode, quarantine: { ...quarantine, seen: true, asMaintenance, seenOnline: 0, overdue } };
  }
  if (now >= quarantine.endsAt) {
    const over = { ...episode, quarantine: null };
    // Marked as healed, so that the step is not repeated if the node vanishes now and returns.
    return episode.state === "quarantined" ? transition({ ...over, healed: true }, "quarantine_over", now) : over;
  }
  if (now >= quarantine.endsAt - QUARANTINE_SLACK_MS - clockLagMs) return episode;
  // Until the node was observed in quarantine, the quarantine may not have taken effect yet.
  if (status !== "online" || !quarantine.seen || episode.dryRun) return episode;
  const seenOnline = quarantine.seenOnline + 1;
  if (seenOnline >= FREED_OBSERVATIONS_MIN) return transition(episode, "freed", now);
  return { ...episode, quarantine: { ...quarantine, seenOnline } };
}

/** Returns whether an observation is the first to show that an operator is working on the node during our step. */
const isOperatorRepair = ({ state, dryRun, repaired, quarantine }: Episode, status: NodeStatus): boolean =>
  (state === "acting" || state === "quarantined") &&
  !dryRun &&
  repaired !== true &&
  (status === "maintenance" || (status === "quarantined" && quarantine === null));

/**
 * Resumes an action or quarantine of a suspended episode whose node is seen again. Anything else waits for the timer.
 */
export function resumeEpisode(before: Episode, hasActionInFlight: boolean, now: EpochMs): Episode {
  const episode = isUnlisted(before) ? { ...before, unlistedAt: null } : before;
  if (hasActionInFlight) return transition(episode, "acting", now);
  return episode.quarantine === null ? episode : transition(episode, "quarantined", now);
}

/**
 * Resumes a suspended episode whose timer fires again. If a step had healed the node, this is a relapse, and the next
 * step follows.
 */
export function refireEpisode(episode: Episode, spec: PolicySpec, now: EpochMs): Episode {
  if (episode.healed) return advanceStep(episode, spec, now);
  return episode.step < spec.steps.length ? transition(episode, "proven", now) : endSteps(episode, spec, now);
}

/**
 * Returns the episode at the end of a step. A quarantine that was never observed did not take effect, unless the service
 * confirmed it and the node is down since: the spec does not state which status a quarantine has (section 3.1).
 */
function settleQuarantine(episode: Episode, action: Action): Episode {
  const { quarantine } = episode;
  if (quarantine === null || quarantine.action !== action.id || quarantine.seen) return episode;
  return { ...episode, quarantine: isDown(episode) && !action.inDoubt ? { ...quarantine, seen: true } : null };
}
