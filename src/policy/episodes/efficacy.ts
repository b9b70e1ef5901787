import type { Safety } from "../../config/schema/safety.ts";
import type { NodeId } from "../../model/node.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import { endedAt } from "./retries.ts";

/** How many of the nodes that a policy treated most recently were healed. */
export interface Efficacy {
  /** Number of different nodes that count, at most `safety.efficacy.window`. */
  readonly nodes: number;
  readonly healed: number;
  /** Whether enough nodes were treated, and too few of them healed. */
  readonly isTooLow: boolean;
}

/**
 * Measures how many nodes a policy heals. For each node it counts the last real episode under this version of the
 * policy that has acted and closed after `since`, or whose node is lost. Episodes that ended because of an operator or
 * a change to the policy don't count.
 */
export function measureEfficacy(
  closed: Iterable<Episode>,
  { policy, fingerprint, since }: { readonly policy: string; readonly fingerprint: string; readonly since: EpochMs },
  { window, minSuccess }: Safety["efficacy"],
): Efficacy {
  const counted = [...closed]
    .filter(
      (episode) =>
        episode.policy === policy && episode.fingerprint === fingerprint && !episode.shadow && episode.acted > 0,
    )
    .filter(({ repaired }) => repaired !== true)
    .filter(({ state }) => state === "healed" || state === "cleared" || state === "given_up" || state === "suspended")
    .filter((episode) => endedAt(episode) > since)
    .sort((a, b) => endedAt(a) - endedAt(b));
  const lastOfNode = new Map<NodeId, Episode>();
  for (const episode of counted) {
    // Deleted first, so that the map is ordered by the last treatment.
    lastOfNode.delete(episode.node);
    lastOfNode.set(episode.node, episode);
  }
  const last = [...lastOfNode.values()].slice(-window);
  const healed = last.filter(({ state }) => state === "healed").length;
  const isTooLow = window > 0 && last.length >= window && healed < minSuccess * last.length - 1e-9;
  return { nodes: last.length, healed, isTooLow };
}
