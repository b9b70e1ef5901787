import type { NodeId } from "../../model/node.ts";
import type { RemediationContext } from "../context.ts";
import type { LastDecision } from "../evaluation/decision-log.ts";
import { heldMs, holdsInForce, isHold } from "./hold-gauges.ts";
import type { HeldNode } from "./views.ts";

type HeldNodeDeps = Pick<RemediationContext, "remediationState" | "policies" | "observed">;

/**
 * Returns the nodes that are held: first those that a policy would treat, and of them the longest hold first.
 * `lastDecisions`: null on a standby, which knows only the holds of nodes.
 */
export function heldNodesOf(context: HeldNodeDeps, lastDecisions: readonly LastDecision[] | null): readonly HeldNode[] {
  const { remediationState, observed } = context;
  const now = remediationState.now();
  const held = new Map<NodeId, HeldNode>();
  const add = (node: NodeId, row: Pick<HeldNode, "policy" | "heldMs" | "reasons" | "until">) => {
    const known = held.get(node);
    if (known === undefined || known.heldMs < row.heldMs)
      held.set(node, { node, name: observed.nameOf(node), ...observed.locationOf(node), ...row });
  };
  const holds = holdsInForce(remediationState);
  const untilOf = new Map(holds.map(({ node, until }) => [node, until]));
  for (const decision of lastDecisions ?? []) {
    const { policy, node, reasons } = decision;
    if (!isHold(context, decision)) continue;
    add(node, { policy, reasons, heldMs: heldMs(context, decision), until: untilOf.get(node) ?? null });
  }
  for (const { node, kind, at, until } of holds)
    if (!held.has(node)) add(node, { policy: null, reasons: [kind], heldMs: now - at, until });
  const isWaiting = ({ policy }: HeldNode) => Number(policy !== null);
  return [...held.values()].sort((one, other) => isWaiting(other) - isWaiting(one) || other.heldMs - one.heldMs);
}

/** Returns the number of nodes in {@link heldNodesOf}. */
export function heldNodeCountOf(
  context: Pick<HeldNodeDeps, "remediationState">,
  lastDecisions: readonly LastDecision[] | null,
): number {
  const decisions = (lastDecisions ?? []).filter((decision) => isHold(context, decision));
  return new Set([...decisions, ...holdsInForce(context.remediationState)].map(({ node }) => node)).size;
}
