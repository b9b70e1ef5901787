import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

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
