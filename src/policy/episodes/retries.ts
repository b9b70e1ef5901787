import type { NodeId } from "../../model/node.ts";
import type { PolicyRule } from "../../model/policy/policy.ts";
import type { Episode, NodeHold } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import type { RemediationRecords } from "../remediation-records.ts";

/** Whether an episode counts as a try: one in which nothing was done does not, unless it was given up. */
export const countsAsAttempt = ({ acted, state }: Episode): boolean => acted > 0 || state === "given_up";

/** The hold of a node that a policy has given up; null: it has not. */
export const givenUpHold = (records: RemediationRecords, node: NodeId, policy: string): NodeHold | null =>
  records.holdsOn(node).find((hold) => hold.kind === "given_up" && hold.policy === policy && hold.until === null) ??
  null;

/** When an operator released a node that a policy had given up: what was tried before counts no more; 0: never. */
export const releasedAt = (records: RemediationRecords, node: NodeId, policy: string): EpochMs =>
  records.holdsOn(node).find((hold) => hold.kind === "given_up" && hold.policy === policy)?.until ?? 0;

/**
 * The last real episodes in a row in which a policy did not heal a node, oldest first. One that begins later than
 * `retry.forget_after` after the one before it ended begins a new row.
 */
export function consecutiveFailures(
  records: RemediationRecords,
  node: NodeId,
  { name, retry }: PolicyRule,
): readonly Episode[] {
  const after = releasedAt(records, node, name);
  const attempts = records
    .closedEpisodesOf(node, false)
    .filter((episode) => episode.policy === name && countsAsAttempt(episode) && episode.closedAt! > after);
  const row: Episode[] = [];
  for (const episode of attempts.toReversed()) {
    const next = row[0];
    if (episode.state !== "given_up") break;
    if (next !== undefined && next.openedAt - episode.closedAt! > retry.forgetAfterMs) break;
    row.unshift(episode);
  }
  return row;
}
