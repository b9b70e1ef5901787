import type { Episode } from "../../model/remediation/episode.ts";
import type { Casebook } from "../remediation-state.ts";
import { isUnderWay } from "../facts.ts";
import type { Policy } from "../policy.ts";

/**
 * The episode on which a policy is tried that was not proven under its current text: the one that has an action under way,
 * also if its node has left the list since; else the oldest that has sent one and can proceed. Null: there is none, and
 * the next to act becomes it.
 */
export function canaryOf(
  { rule, fingerprint }: Policy,
  casebook: Casebook,
  canProceed: (episode: Episode) => boolean,
): Episode | null {
  const actionsUnder = ({ id }: Episode) =>
    casebook.actionsOf(id).filter((action) => action.sentAt !== null && action.fingerprint === fingerprint);
  const tried = casebook
    .openEpisodes()
    .filter((episode) => !episode.shadow && episode.policy === rule.name && actionsUnder(episode).length > 0)
    .toSorted((a, b) => a.openedAt - b.openedAt);
  return tried.find((episode) => actionsUnder(episode).some(isUnderWay)) ?? tried.find(canProceed) ?? null;
}
