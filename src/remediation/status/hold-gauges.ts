import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { HOLD_REASONS, type HoldReason } from "../../model/remediation/decision.ts";
import type { RemediationContext } from "../context.ts";
import type { ActionPlanner, LastDecision } from "../evaluation/action-planner.ts";

/** Shows how many nodes are held, and how long the longest has been. Dry runs are left out. */
export interface HoldGauges {
  /** Brings the series up to date with the last decisions. */
  show(): void;
  /** Removes all of them. */
  clear(): void;
}

/** Reasons of nodes that were given up: they have a count and an alert of their own. */
const GIVEN_UP_REASON: ReadonlySet<HoldReason> = new Set<HoldReason>(["retry_wait", "retry_limit"]);

type HoldGaugeDeps = Pick<RemediationContext, "remediationState" | "policies" | "metrics">;

/** Creates gauges that show nothing yet. */
export function createHoldGauges(context: HoldGaugeDeps, lastDecisions: ActionPlanner["lastDecisions"]): HoldGauges {
  const { metrics, policies } = context;
  /** Held nodes by reason, as they are shown. */
  const shownSeries = new Map<HoldReason, number>();

  function setHeldNodes(holds: readonly LastDecision[]): void {
    const nodes = new Map(HOLD_REASONS.map((reason) => [reason, new Set<NodeId>()]));
    for (const { node, reasons } of holds) for (const reason of reasons) nodes.get(reason)!.add(node);
    for (const [reason, { size }] of nodes) {
      if (shownSeries.get(reason) === size) continue;
      metrics.set("proxywarden_held_nodes", { reason }, size);
      shownSeries.set(reason, size);
    }
  }

  function setLongestHolds(holds: readonly LastDecision[]): void {
    const lastingHolds = holds.filter(({ reasons }) => !reasons.some((reason) => GIVEN_UP_REASON.has(reason)));
    for (const { rule } of policies.all) {
      const ofPolicy = lastingHolds.filter(({ policy }) => policy === rule.name);
      const longestMs = ofPolicy.reduce((longest, decision) => Math.max(longest, heldMs(context, decision)), 0);
      metrics.set("proxywarden_longest_hold_seconds", { policy: rule.name }, longestMs / SECOND_MS);
    }
  }

  return {
    show() {
      const holds = [...lastDecisions.values()].filter((decision) => isHold(context, decision));
      setHeldNodes(holds);
      setLongestHolds(holds);
    },
    clear() {
      shownSeries.clear();
      for (const reason of HOLD_REASONS) metrics.remove("proxywarden_held_nodes", { reason });
      for (const { rule } of policies.all) metrics.remove("proxywarden_longest_hold_seconds", { policy: rule.name });
    },
  };
}

/** Whether a policy that acts holds the node. A node that an episode of any policy treats is not held. */
function isHold({ remediationState: { records } }: HoldGaugeDeps, { node, dryRun, reasons }: LastDecision): boolean {
  if (dryRun || reasons.length === 0) return false;
  const open = records.openEpisode(node, false);
  return open === null || open.state === "firing";
}

/** Time since the node could have been acted on: since its next step was due, or since its timer fires. */
function heldMs(context: HoldGaugeDeps, { policy, node }: LastDecision): DurationMs {
  const { records, now } = context.remediationState;
  const open = records.openEpisode(node, false);
  if (open?.policy === policy) return now() - open.stateAt;
  const { since } = records.timer(policy, node);
  const forMs = context.policies.find(policy)?.rule.forMs ?? 0;
  const closedAt = records.closedEpisodesOf(node, false).at(-1)?.closedAt ?? Number.NEGATIVE_INFINITY;
  return Math.max(0, now() - Math.max((since ?? now()) + forMs, closedAt));
}
