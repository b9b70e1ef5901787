import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { HOLD_REASONS, type HoldReason } from "../../model/remediation/decision.ts";
import { findPolicy, type RemediationContext, type ToldDecision } from "../context.ts";

/** Shows how many nodes are held, and how long the longest has been. Dry runs are left out. */
export interface HoldGauges {
  /** Brings the series up to date with the last decisions. */
  show(): void;
  /** Removes all of them. */
  clear(): void;
}

/** Reasons of nodes that were given up: they have a count and an alert of their own. */
const GIVEN_UP_REASON: ReadonlySet<HoldReason> = new Set<HoldReason>(["retry_wait", "retry_limit"]);

/** Creates the gauges of a ward. */
export function createHoldGauges(context: RemediationContext): HoldGauges {
  const { metrics, policies } = context;
  /** Held nodes by reason, as they are shown. */
  const shownSeries = new Map<HoldReason, number>();

  function setHeldNodes(holds: readonly ToldDecision[]): void {
    const nodes = new Map(HOLD_REASONS.map((reason) => [reason, new Set<NodeId>()]));
    for (const { node, reasons } of holds) for (const reason of reasons) nodes.get(reason)!.add(node);
    for (const [reason, { size }] of nodes) {
      if (shownSeries.get(reason) === size) continue;
      metrics.set("proxywarden_held_nodes", { reason }, size);
      shownSeries.set(reason, size);
    }
  }

  function setLongestHolds(holds: readonly ToldDecision[]): void {
    const lastingHolds = holds.filter(({ reasons }) => !reasons.some((reason) => GIVEN_UP_REASON.has(reason)));
    for (const { rule } of policies) {
      const ofPolicy = lastingHolds.filter(({ policy }) => policy === rule.name);
      const longestMs = ofPolicy.reduce(
        (longest, shownPolicies) => Math.max(longest, heldMs(context, shownPolicies)),
        0,
      );
      metrics.set("proxywarden_longest_hold_seconds", { policy: rule.name }, longestMs / SECOND_MS);
    }
  }

  return {
    show() {
      const holds = [...context.notifiedEpisodes.values()].filter((shownPolicies) => isHold(context, shownPolicies));
      setHeldNodes(holds);
      setLongestHolds(holds);
    },
    clear() {
      shownSeries.clear();
      for (const reason of HOLD_REASONS) metrics.remove("proxywarden_held_nodes", { reason });
      for (const { rule } of policies) metrics.remove("proxywarden_longest_hold_seconds", { policy: rule.name });
    },
  };
}

/** Whether a policy that acts holds the node. A node that an episode of any policy treats is not held. */
function isHold(
  { remediationState: { records } }: RemediationContext,
  { node, shadow: dryRun, reasons }: ToldDecision,
): boolean {
  if (dryRun || reasons.length === 0) return false;
  const open = records.openEpisode(node, false);
  return open === null || open.state === "firing";
}

/** Time since the node could have been acted on: since its next step was due, or since its timer fires. */
function heldMs(context: RemediationContext, { policy, node }: ToldDecision): DurationMs {
  const { records, now } = context.remediationState;
  const open = records.openEpisode(node, false);
  if (open?.policy === policy) return now() - open.stateAt;
  const { since } = records.timer(policy, node);
  const forMs = findPolicy(context, policy)?.rule.forMs ?? 0;
  const closedAt = records.closedEpisodesOf(node, false).at(-1)?.closedAt ?? Number.NEGATIVE_INFINITY;
  return Math.max(0, now() - Math.max((since ?? now()) + forMs, closedAt));
}
