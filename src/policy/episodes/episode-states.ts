import type { Episode, EpisodeState, OPEN_STATES } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

/**
 * The state of an episode after an event, by the state before it. Absent if the event can't happen in that state.
 *
 * ```
 * firing ──sent──▶ acting ──verified──▶ recovering ──healed──▶ healed
 *   ▲ ▲ ▲            │ │                    │
 *   │ │ └─next_step──┘ └─quarantined─▶ quarantined ──quarantine_over──▶ probation ──healed──▶ healed
 *   │ └───next_step─────────────────────────┘ (from recovering)             │
 *   └─────next_step─────────────────────────────────────────────────────────┘
 *
 * firing, or repaired by an operator      ──cleared────▶ cleared
 * firing, acting, recovering, probation   ──steps_over─▶ given_up
 *   while the daemon's quarantine lasts   ──quarantined▶ quarantined
 *   while a step has left the node down   ──unseen─────▶ suspended
 * any open state                          ──unseen─────▶ suspended
 * suspended, when its step times out      ──step_lost──▶ suspended, at the next step
 * suspended                               ──proven─────▶ firing, or the next step if a step had healed it
 *                                         ──steps_over─▶ given_up, if no step is left
 *                                         ──acting, quarantined─▶ acting or quarantined, if still in progress
 *                                         ──cleared, healed─▶ closed
 * quarantine lifted by an operator        ──freed──────▶ freed
 * any open state                          ──withdrawn──▶ withdrawn
 * ```
 *
 * `unseen` suspends an episode in any open state, because its node left the fleet, its timer lapsed, or it can't proceed
 * and its last step has left the node down. A suspended episode frees its node for other policies. It resumes when its
 * timer fires again. If its node left the list after an action, or is down after it, the node is lost, and the episode
 * stays suspended until the node is available again or an operator accepts the loss.
 */
export const EPISODE_TRANSITIONS = {
  firing: {
    sent: "acting",
    unsent: "firing",
    next_step: "firing",
    steps_over: "given_up",
    quarantined: "quarantined",
    cleared: "cleared",
    freed: "freed",
    unseen: "suspended",
    withdrawn: "withdrawn",
  },
  acting: {
    next_step: "firing",
    steps_over: "given_up",
    verified: "recovering",
    quarantined: "quarantined",
    freed: "freed",
    unseen: "suspended",
    withdrawn: "withdrawn",
  },
  recovering: {
    next_step: "firing",
    steps_over: "given_up",
    quarantined: "quarantined",
    healed: "healed",
    cleared: "cleared",
    freed: "freed",
    unseen: "suspended",
    withdrawn: "withdrawn",
  },
  quarantined: { quarantine_over: "probation", freed: "freed", unseen: "suspended", withdrawn: "withdrawn" },
  probation: {
    next_step: "firing",
    steps_over: "given_up",
    healed: "healed",
    cleared: "cleared",
    unseen: "suspended",
    withdrawn: "withdrawn",
  },
  suspended: {
    proven: "firing",
    next_step: "firing",
    steps_over: "given_up",
    acting: "acting",
    quarantined: "quarantined",
    step_lost: "suspended",
    cleared: "cleared",
    healed: "healed",
    withdrawn: "withdrawn",
  },
} as const satisfies Readonly<Record<OpenState, Readonly<Partial<Record<string, EpisodeState>>>>>;

type OpenState = (typeof OPEN_STATES)[number];
/** An event of an episode. */
type EpisodeEvent = { [State in OpenState]: keyof (typeof EPISODE_TRANSITIONS)[State] }[OpenState];

/** Returns the episode after an event. Throws if the event can't happen in its state. */
export function transition(episode: Episode, event: EpisodeEvent, now: EpochMs): Episode {
  const { id, state: before } = episode;
  const next: Readonly<Partial<Record<EpisodeEvent, EpisodeState>>> = EPISODE_TRANSITIONS[before as OpenState] ?? {};
  const state = next[event];
  if (state === undefined) throw new Error(`${id} is ${before}: ${event} can't happen to it`);
  if (state === before) return episode;
  const moved = { ...episode, state, stateAt: now };
  return state in EPISODE_TRANSITIONS ? moved : { ...moved, closedAt: now, quarantine: null, retryAt: null };
}

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
