import type { Episode } from "../../model/remediation/episode.ts";
import { isInFlight } from "../facts.ts";
import type { Policy } from "../policy.ts";
import type { RemediationRecords } from "../remediation-state.ts";

/**
 * The episode on which a policy is tried that was not proven under its current text: the one that has an action under way,
 * also if its node has left the list since; else the oldest that has sent one and can proceed. Null: there is none, and
 * the next to act becomes it.
 */
export function findCanary(
  { rule, fingerprint }: Policy,
  records: RemediationRecords,
  canProceed: (episode: Episode) => boolean,
): Episode | null {
  const sentActionsOf = ({ id }: Episode) =>
    records.actionsOf(id).filter((action) => action.sentAt !== null && action.fingerprint === fingerprint);
  const candidates = records
    .openEpisodes()
    .filter((episode) => !episode.shadow && episode.policy === rule.name && sentActionsOf(episode).length > 0)
    .toSorted((a, b) => a.openedAt - b.openedAt);
  return candidates.find((episode) => sentActionsOf(episode).some(isInFlight)) ?? candidates.find(canProceed) ?? null;
}
