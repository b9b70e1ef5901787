import { MINUTE_MS } from "../base/duration.ts";
import type { Action, Episode, Quarantine } from "../model/episode.ts";
import type { NodeStatus } from "../model/node.ts";
import type { PolicyRule } from "../model/policy.ts";
import type { EpochMs } from "../model/time.ts";
import { type ActivePolicy, isShadow, type NodeSight } from "./facts.ts";
import type { StepEnd } from "./verification.ts";

/** Sends that never left are tried again after this, doubled each time, up to the most. */
const BACKOFF_MS = MINUTE_MS;
const BACKOFF_MS_MAX = 30 * MINUTE_MS;
/** A quarantine that ends this much before its time has ended by itself: clocks differ, and minutes are whole. */
const QUARANTINE_SLACK_MS = MINUTE_MS;
/** One that is still on this long after its end is overdue. */
const OVERDUE_MS = 5 * MINUTE_MS;
/** So many looks in a row that show a node online, and it was freed: one may come from a moment before. */
const FREED_LOOKS = 2;

/** An episode that begins. */
export function begun(active: ActivePolicy, node: NodeSight, id: string, now: EpochMs): Episode {
  return {
    id,
    policy: active.policy.rule.name,
    node: node.id,
    shadow: isShadow(active),
    fingerprint: active.policy.fingerprint,
    country: node.country,
    region: node.region,
    state: "firing",
    stateAt: now,
    openedAt: now,
    closedAt: null,
    step: 0,
    acted: 0,
    failures: 0,
    retryAt: null,
    quarantine: null,
    healed: false,
  };
}

/** Moves an episode to another state. */
export const moved = (episode: Episode, state: Episode["state"], now: EpochMs): Episode =>
  episode.state === state ? episode : { ...episode, state, stateAt: now };

/** Closes an episode. */
export const closed = (
  episode: Episode,
  state: "healed" | "cleared" | "given_up" | "freed" | "withdrawn",
  now: EpochMs,
): Episode => ({ ...episode, state, stateAt: now, closedAt: now, quarantine: null, retryAt: null });

/** After a step was sent, or may have been. `minutes`: how long a quarantine lasts, as the service said or as it was asked. */
export function afterSending(episode: Episode, action: Action, minutes: number | null, now: EpochMs): Episode {
  const quarantine: Quarantine | null =
    action.request.kind !== "quarantine"
      ? episode.quarantine
      : {
          action: action.id,
          endsAt: (action.sentAt ?? now) + (minutes ?? action.request.durationMinutes) * MINUTE_MS,
          // Nobody can see one that was never made.
          seen: episode.shadow,
          seenOnline: 0,
          overdue: false,
        };
  const sent = {
    ...episode,
    acted: episode.acted + 1,
    failures: 0,
    retryAt: null,
    quarantine,
    healed: false,
    repaired: false,
  };
  return moved(sent, "acting", now);
}

/** After a step that never left: the same one is decided on again, later. */
export function afterFailure(episode: Episode, now: EpochMs): Episode {
  const wait = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** Math.min(episode.failures, 16));
  return moved({ ...episode, failures: episode.failures + 1, retryAt: now + wait }, "firing", now);
}

/** After the service asked to wait: the same step again, not before. */
export const afterLimit = (episode: Episode, waitMs: number, now: EpochMs): Episode =>
  moved({ ...episode, retryAt: now + waitMs }, "firing", now);

/** After the service refused a step: the episode is given up, unless our quarantine is still to be watched. */
export function afterRefusal(episode: Episode, rule: PolicyRule, now: EpochMs): Episode {
  const atEnd = { ...episode, step: rule.steps.length };
  return atEnd.quarantine === null ? closed(atEnd, "given_up", now) : moved(atEnd, "quarantined", now);
}

/** After a step ended. Only an ineffective one leads to the next. */
export function afterStep(episode: Episode, action: Action, end: StepEnd, rule: PolicyRule, now: EpochMs): Episode {
  const isQuarantine = action.request.kind === "quarantine";
  switch (end) {
    case "verified":
      if (isQuarantine && episode.quarantine?.seen === true) return moved(episode, "quarantined", now);
      return moved({ ...withoutUnseen(episode, action), healed: true }, "recovering", now);
    case "ineffective":
      return nextRung(withoutUnseen(episode, action), rule, now);
    case "in_doubt":
      return afterRefusal(withoutUnseen(episode, action), rule, now);
    default:
      return end satisfies never;
  }
}

/** The next step, or, where none is left, the end. */
export function nextRung(episode: Episode, rule: PolicyRule, now: EpochMs): Episode {
  const next = { ...episode, step: episode.step + 1, failures: 0, retryAt: null, healed: false };
  return next.step < rule.steps.length ? moved(next, "firing", now) : afterRefusal(next, rule, now);
}

/** What a look at the node's status makes of our quarantine. */
export function afterLook(before: Episode, status: NodeStatus, now: EpochMs): Episode {
  const episode = isRepaired(before, status) ? { ...before, repaired: true } : before;
  const { quarantine } = episode;
  if (quarantine === null) return episode;
  if (status === "quarantined") {
    const overdue = now > quarantine.endsAt + OVERDUE_MS;
    if (quarantine.seen && quarantine.seenOnline === 0 && quarantine.overdue === overdue) return episode;
    return { ...episode, quarantine: { ...quarantine, seen: true, seenOnline: 0, overdue } };
  }
  if (now >= quarantine.endsAt - QUARANTINE_SLACK_MS) {
    if (episode.state !== "quarantined") return now >= quarantine.endsAt ? { ...episode, quarantine: null } : episode;
    // Healed until the contrary shows: if the node vanishes now, the step is not taken once more when it is back.
    return now >= quarantine.endsAt ? moved({ ...episode, quarantine: null, healed: true }, "probation", now) : episode;
  }
  // Before anybody saw it in there, it may just not be there yet.
  if (status !== "online" || !quarantine.seen || episode.shadow) return episode;
  const seenOnline = quarantine.seenOnline + 1;
  if (seenOnline >= FREED_LOOKS) return closed(episode, "freed", now);
  return { ...episode, quarantine: { ...quarantine, seenOnline } };
}

/** Whether a look at the node's status is the first to show that an operator works on it while our step lasts. */
const isRepaired = ({ state, shadow, repaired, quarantine }: Episode, status: NodeStatus): boolean =>
  (state === "acting" || state === "quarantined") &&
  !shadow &&
  repaired !== true &&
  (status === "maintenance" || (status === "quarantined" && quarantine === null));

/** The state of an episode whose node is back. */
export function resumed(episode: Episode, hasActionUnderWay: boolean, now: EpochMs): Episode {
  if (hasActionUnderWay) return moved(episode, "acting", now);
  if (episode.quarantine !== null) return moved(episode, "quarantined", now);
  return moved(episode, episode.healed ? "recovering" : "firing", now);
}

/** A quarantine that nobody ever saw did not come about. */
const withoutUnseen = (episode: Episode, action: Action): Episode =>
  episode.quarantine !== null && episode.quarantine.action === action.id && !episode.quarantine.seen
    ? { ...episode, quarantine: null }
    : episode;
