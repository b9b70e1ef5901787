import type { Episode } from "../model/episode.ts";
import type { Safety } from "../model/safety.ts";

/** How the last episodes of a policy went. */
export interface Efficacy {
  /** Episodes that count, at most the window. */
  readonly episodes: number;
  readonly healed: number;
  /** Whether enough of them were tried, and too few healed. */
  readonly isPoor: boolean;
}

/**
 * How much a policy heals. Of its real episodes under the same text those count in which something was done and that
 * ended by themselves, or whose node is lost (they are suspended): what an operator lifted or repaired, or what became of
 * a removed policy, says nothing about it.
 */
export function efficacyOf(
  closed: Iterable<Episode>,
  { policy, fingerprint }: { readonly policy: string; readonly fingerprint: string },
  { window, minSuccess }: Safety["efficacy"],
): Efficacy {
  const counted = [...closed]
    .filter((each) => each.policy === policy && each.fingerprint === fingerprint && !each.shadow && each.acted > 0)
    .filter(({ repaired }) => repaired !== true)
    .filter(({ state }) => state === "healed" || state === "cleared" || state === "given_up" || state === "suspended")
    .sort((a, b) => (a.closedAt ?? a.stateAt) - (b.closedAt ?? b.stateAt))
    .slice(-window);
  const healed = counted.filter(({ state }) => state === "healed").length;
  const isPoor = window > 0 && counted.length >= window && healed < minSuccess * counted.length - 1e-9;
  return { episodes: counted.length, healed, isPoor };
}
