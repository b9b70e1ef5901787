import { type Episode, type EpisodeState, OPEN_STATES } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

/**
 * The events of an episode: the states in which each can happen, and the state to which it leads.
 *
 * ```
 * firing ──sent──▶ acting ──verified──▶ recovering ──healed──▶ healed
 *   ▲ ▲ ▲            │ │                    │
 *   │ │ └─next_step──┘ └─quarantined─▶ quarantined ──quarantine_over──▶ probation ──healed──▶ healed
 *   │ └───next_step─────────────────────────┘ (from recovering)             │
 *   └─────next_step─────────────────────────────────────────────────────────┘
 *
 * firing                                  ──unsent, next_step─▶ firing, at the same or the next step
 * firing, or repaired by an operator      ──cleared────▶ cleared
 * firing, acting, recovering, probation   ──steps_over─▶ given_up
 *   while the daemon's quarantine lasts   ──quarantined▶ quarantined
 *   while a step has left the node down   ──unseen─────▶ suspended
 * any other open state                    ──unseen─────▶ suspended
 * suspended, when its step times out      ──step_lost──▶ suspended, at the next step
 * suspended                               ──proven─────▶ firing, or the next step if a step had healed it
 *                                         ──steps_over─▶ given_up, if no step is left
 *                                         ──acting, quarantined─▶ acting or quarantined, if still in progress
 *                                         ──cleared, healed─▶ closed
 * quarantine lifted by an operator        ──freed──────▶ freed
 * any open state                          ──withdrawn──▶ withdrawn
 * ```
 *
 * `unseen` suspends an open episode, because its node left the fleet, its timer lapsed, or it can't proceed
 * and its last step has left the node down. A suspended episode frees its node for other policies. It resumes when its
 * timer fires again. If its node left the list after an action, or is down after it, the node is lost, and the episode
 * stays suspended until the node is available again or an operator accepts the loss.
 */
export const EPISODE_TRANSITIONS = {
  sent: { from: ["firing"], to: "acting" },
  unsent: { from: ["firing"], to: "firing" },
  verified: { from: ["acting"], to: "recovering" },
  next_step: { from: ["firing", "acting", "recovering", "probation", "suspended"], to: "firing" },
  steps_over: { from: ["firing", "acting", "recovering", "probation", "suspended"], to: "given_up" },
  quarantined: { from: ["firing", "acting", "recovering", "suspended"], to: "quarantined" },
  quarantine_over: { from: ["quarantined"], to: "probation" },
  healed: { from: ["recovering", "probation", "suspended"], to: "healed" },
  cleared: { from: ["firing", "recovering", "probation", "suspended"], to: "cleared" },
  freed: { from: ["firing", "acting", "recovering", "quarantined"], to: "freed" },
  unseen: { from: ["firing", "acting", "recovering", "quarantined", "probation"], to: "suspended" },
  proven: { from: ["suspended"], to: "firing" },
  acting: { from: ["suspended"], to: "acting" },
  step_lost: { from: ["suspended"], to: "suspended" },
  withdrawn: { from: OPEN_STATES, to: "withdrawn" },
} as const satisfies Readonly<Record<string, Transition>>;

interface Transition {
  readonly from: readonly EpisodeState[];
  readonly to: EpisodeState;
}

/** Returns the episode after an event. Throws if the event can't happen in its state. */
export function transition(episode: Episode, event: keyof typeof EPISODE_TRANSITIONS, now: EpochMs): Episode {
  const { id, state: before } = episode;
  const { from, to: state }: Transition = EPISODE_TRANSITIONS[event];
  if (!from.includes(before)) throw new Error(`${id} is ${before}: ${event} can't happen to it`);
  if (state === before) return episode;
  const moved = { ...episode, state, stateAt: now };
  const isOpen = OPEN_STATES.some((open) => open === state);
  return isOpen ? moved : { ...moved, closedAt: now, quarantine: null, retryAt: null };
}

/**
 * Returns whether an episode has acted, so that its node may still be changing. A suspended episode waits for the
 * cooldown of those only: an episode that was given up without an action has left the node as it was.
 */
export const hasActed = ({ acted }: Episode): boolean => acted > 0;

/**
 * Returns whether an episode counts as an attempt because it has acted or was given up. A new episode waits for the
 * cooldown of both, so that another policy does not act as soon as one was given up.
 */
export const countsAsAttempt = (episode: Episode): boolean => hasActed(episode) || episode.state === "given_up";

/** Returns whether an action or a quarantine of ours is under way. */
export const isUnderWay = ({ state, quarantine }: Episode): boolean => state === "acting" || quarantine !== null;

/** Returns whether the node of an episode has left the list. */
export const isUnlisted = ({ state, unlistedAt }: Episode): boolean =>
  state === "suspended" && unlistedAt !== null && unlistedAt !== undefined;

/** Returns whether a step has left the node of an episode down. */
export const isDown = ({ downSince }: Episode): boolean => downSince !== null && downSince !== undefined;

/**
 * Returns whether the node of an episode is lost, which means that it left the list after an action of ours, or that the
 * episode can't proceed and its last step has left the node down. It counts as disrupted, as unhealthy and as a failure
 * of its policy until it is available again or an operator accepts the loss.
 */
export const isLost = (episode: Episode): boolean =>
  !episode.dryRun && episode.acted > 0 && (isUnlisted(episode) || (episode.state === "suspended" && isDown(episode)));

/**
 * Returns whether an operator can accept that the node of an episode is gone or down: it is lost, or a step has left it
 * down and no step is in progress.
 */
export const isAcceptableLoss = (episode: Episode): boolean =>
  isLost(episode) || (isDown(episode) && !isUnderWay(episode));

/** Returns when a lost node was lost. */
export const lostSince = (episode: Episode): EpochMs =>
  isDown(episode) ? episode.stateAt : (episode.unlistedAt ?? episode.stateAt);
