import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Action, Episode, Quarantine } from "../model/episode.ts";
import type { NodeStatus } from "../model/node.ts";
import type { PolicyRule } from "../model/policy.ts";
import type { EpochMs } from "../model/time.ts";
import { type ActivePolicy, isShadow, type NodeSight } from "./facts.ts";
import type { StepEnd } from "./verification.ts";

/** Sends that never left are tried again after this, doubled each time, up to the most. */
const BACKOFF_MS = MINUTE_MS;
const BACKOFF_MS_MAX = 30 * MINUTE_MS;
/** The wait after the first 429, doubled with each. */
const LIMITED_MS: DurationMs = SECOND_MS;
/** Attempts of one step that may be answered with 429: more would only add to what the service refuses. */
export const LIMITED_MAX = 5;
/** A quarantine that ends this much before its time has ended by itself: clocks differ, and minutes are whole. */
const QUARANTINE_SLACK_MS = MINUTE_MS;
/** One that is still on this long after its end is overdue. */
const OVERDUE_MS = 5 * MINUTE_MS;
/** So many looks in a row that show a node online, and it was freed: one may come from a moment before. */
const FREED_LOOKS = 2;

/** What an episode remembers of the attempts of a step, before the first. */
const FRESH_STEP = { failures: 0, limited: 0, retryAt: null } as const;

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
    ...FRESH_STEP,
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
  const sent = { ...episode, acted: episode.acted + 1, ...FRESH_STEP, quarantine, healed: false };
  return moved(sent, "acting", now);
}

/** After a step that never left: the same one is decided on again, later. */
export function afterFailure(episode: Episode, now: EpochMs): Episode {
  const wait = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** Math.min(episode.failures, 16));
  return moved({ ...episode, failures: episode.failures + 1, retryAt: now + wait }, "firing", now);
}

/**
 * After a 429: nothing was executed, and the same step is sent again. `retryAfterMs`: the wait that the service asks for;
 * null: it names none, and the wait doubles from 1 s (spec, section 7.1). After {@link LIMITED_MAX} the episode is given up.
 */
export function afterLimit(episode: Episode, retryAfterMs: DurationMs | null, now: EpochMs): Episode {
  const limited = (episode.limited ?? 0) + 1;
  const wait = retryAfterMs ?? LIMITED_MS * 2 ** (limited - 1);
  const next: Episode = { ...episode, limited, retryAt: now + wait };
  if (limited < LIMITED_MAX) return moved(next, "firing", now);
  return next.quarantine === null ? closed(next, "given_up", now) : moved(next, "quarantined", now);
}

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

/** After the time of a step ended while its node was lost: it stays lost, and the next step follows once it is back. */
export const afterLoss = (episode: Episode, action: Action): Episode => ({
  ...withoutUnseen(episode, action),
  ...{ step: episode.step + 1, ...FRESH_STEP, healed: false },
});

/** The next step, or, where none is left, the end. */
export function nextRung(episode: Episode, rule: PolicyRule, now: EpochMs): Episode {
  const next = { ...episode, step: episode.step + 1, ...FRESH_STEP, healed: false };
  return next.step < rule.steps.length ? moved(next, "firing", now) : afterRefusal(next, rule, now);
}

/** What a look at the node's status makes of our quarantine. */
export function afterLook(episode: Episode, status: NodeStatus, now: EpochMs): Episode {
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
