import type { Safety } from "../../config/schema/safety.ts";
import type { NodeId } from "../../model/node.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

/** How many of the nodes that a policy treated last were healed. */
export interface Efficacy {
  /** Different nodes that count, at most the window. */
  readonly nodes: number;
  readonly healed: number;
  /** Whether enough of them were tried, and too few healed. */
  readonly isTooLow: boolean;
}

/**
 * Measures how many nodes a policy heals. Of each node the last real episode under the same text counts that closed after `since`, or
 * whose node is lost (it is suspended), in which something was done and that ended by itself: what an operator lifted or
 * repaired, or a change of the policy, says nothing about it.
 */
export function measureEfficacy(
  closed: Iterable<Episode>,
  { policy, fingerprint, since }: { readonly policy: string; readonly fingerprint: string; readonly since: EpochMs },
  { window, minSuccess }: Safety["efficacy"],
): Efficacy {
  const counted = [...closed]
    .filter((each) => each.policy === policy && each.fingerprint === fingerprint && !each.shadow && each.acted > 0)
    .filter(({ repaired }) => repaired !== true)
    .filter(({ state }) => state === "healed" || state === "cleared" || state === "given_up" || state === "suspended")
    .filter((each) => endedAt(each) > since)
    .sort((a, b) => endedAt(a) - endedAt(b));
  const lastOfNode = new Map<NodeId, Episode>();
  for (const episode of counted) {
    // Deleted and set again, so that the map is in the order of the last treatments.
    lastOfNode.delete(episode.node);
    lastOfNode.set(episode.node, episode);
  }
  const last = [...lastOfNode.values()].slice(-window);
  const healed = last.filter(({ state }) => state === "healed").length;
  const isPoor = window > 0 && last.length >= window && healed < minSuccess * last.length - 1e-9;
  return { nodes: last.length, healed, isTooLow: isPoor };
}

/** When an episode closed, or its node was lost. */
const endedAt = ({ closedAt, stateAt }: Episode): EpochMs => closedAt ?? stateAt;
