import type { NodeId } from "../../model/node.ts";
import type { Location } from "../../model/snapshot.ts";
import type { RemediationContext } from "../context.ts";
import type { LastDecision } from "../evaluation/decision-log.ts";
import { heldMs, holdsInForce, isHold } from "./hold-gauges.ts";
import type { HeldNode, HeldNodesQuery } from "./views.ts";

type HeldNodeDeps = Pick<RemediationContext, "remediationState" | "policies" | "observed">;

/**
 * Returns the nodes that are held. Those that a policy would treat come before the others, and in each group the longest
 * hold comes first. `lastDecisions` is null on a standby, which knows only the holds of nodes.
 */
export function heldNodesOf(
  context: HeldNodeDeps,
  lastDecisions: readonly LastDecision[] | null,
  query: HeldNodesQuery,
): readonly HeldNode[] {
  const { remediationState, observed } = context;
  const { limit = Number.POSITIVE_INFINITY } = query;
  const isSought = ({ node, policy }: Pick<HeldNode, "node" | "policy">) =>
    (query.node ?? node) === node && (query.policy ?? policy) === policy;
  const now = remediationState.now();
  const held = new Map<NodeId, Omit<HeldNode, "name" | "ipAddress" | keyof Location>>();
  const holds = holdsInForce(remediationState);
  const untilOf = new Map(holds.map(({ node, until }) => [node, until]));
  for (const decision of lastDecisions ?? []) {
    // Several policies may hold a node, so a query for one of them must not see the others.
    if (!isSought(decision) || !isHold(context, decision)) continue;
    const { policy, node, reasons } = decision;
    const row = { node, policy, heldMs: heldMs(context, decision, now), reasons, until: untilOf.get(node) ?? null };
    const known = held.get(node);
    if (known === undefined || known.heldMs < row.heldMs) held.set(node, row);
  }
  for (const { node, kind, at, until } of holds) {
    const row = { node, policy: null, heldMs: now - at, reasons: [kind], until };
    if (!held.has(node) && isSought(row)) held.set(node, row);
  }
  const isWaiting = (row: Pick<HeldNode, "policy">) => Number(row.policy !== null);
  // Only the rows that are shown get names and places, because thousands may be held.
  return [...held.values()]
    .sort((one, other) => isWaiting(other) - isWaiting(one) || other.heldMs - one.heldMs)
    .slice(0, limit)
    .map(({ node, ...row }) => ({
      ...{ node, name: observed.nameOf(node), ipAddress: observed.ipAddressOf(node) },
      ...observed.locationOf(node),
      ...row,
    }));
}

/** Returns the number of nodes in {@link heldNodesOf}. */
export function heldNodeCountOf(
  context: Pick<HeldNodeDeps, "remediationState">,
  lastDecisions: readonly LastDecision[] | null,
): number {
  const decisions = (lastDecisions ?? []).filter((decision) => isHold(context, decision));
  return new Set([...decisions, ...holdsInForce(context.remediationState)].map(({ node }) => node)).size;
}
