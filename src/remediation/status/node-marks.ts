import type { NodeId } from "../../model/node.ts";
import { isDryRun } from "../../policy/facts.ts";
import { type CandidateDeps, firingNodes, isGivenUp } from "../evaluation/candidates.ts";
import type { LastDecision } from "../evaluation/decision-log.ts";
import { isHold } from "./hold-gauges.ts";
import { NODE_MARKS, type NodeMark } from "./views.ts";

/** Returns the most important mark of each node that has one. */
export function nodeMarksOf(
  { remediationState, policies }: Pick<CandidateDeps, "remediationState" | "policies">,
  lastDecisions: readonly LastDecision[],
): ReadonlyMap<NodeId, NodeMark> {
  const { records } = remediationState;
  const marks = new Map<NodeId, NodeMark>();
  const mark = (node: NodeId, what: NodeMark) => {
    if (NODE_MARKS.indexOf(what) > NODE_MARKS.indexOf(marks.get(node) ?? "none")) marks.set(node, what);
  };
  for (const active of policies.active()) {
    const { name } = active.policy.rule;
    const dryRun = isDryRun(active);
    for (const node of records.timersOf(name).keys()) mark(node, "pending");
    for (const node of firingNodes(remediationState, name)) {
      mark(node, dryRun ? "shadow" : isGivenUp(remediationState, name, node, false) ? "given_up" : "firing");
    }
  }
  for (const { node, shadow: dryRun, state } of records.openEpisodes()) {
    if (dryRun) mark(node, "shadow");
    else if (state === "acting") mark(node, "acting");
    else mark(node, state === "firing" || state === "suspended" ? "firing" : "episode");
  }
  for (const decision of lastDecisions) {
    const waits = isHold({ remediationState }, decision) ? waitingMark(decision) : null;
    if (waits !== null) mark(decision.node, waits);
  }
  const now = remediationState.now();
  for (const { node, kind, until } of records.allHolds()) {
    if (kind !== "given_up" && (until === null || until > now)) mark(node, "held");
  }
  for (const { node, state } of records.actions()) if (state === "awaiting") mark(node, "awaiting");
  return marks;
}

/** Returns the mark of a node that other actions delay, and nothing else holds; null: something else does. */
function waitingMark({ reasons }: LastDecision): NodeMark | null {
  if (!reasons.every((reason) => reason === "in_flight" || reason === "canary")) return null;
  return reasons.includes("canary") ? "canary" : "in_flight";
}
