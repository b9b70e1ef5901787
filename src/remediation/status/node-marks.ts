import type { NodeId } from "../../model/node.ts";
import { eachInSteps } from "../../platform/event-loop.ts";
import { isDryRun } from "../../policy/facts.ts";
import { type CandidateDeps, isGivenUp } from "../evaluation/candidates.ts";
import type { LastDecision } from "../evaluation/decision-log.ts";
import { holdsInForce, isHold } from "./held-nodes.ts";
import { NODE_MARKS, type NodeMark } from "./views.ts";

/** The position of each mark in {@link NODE_MARKS}. */
const RANKS = Object.fromEntries(NODE_MARKS.map((mark, rank) => [mark, rank])) as Readonly<Record<NodeMark, number>>;

/**
 * Returns the most important mark of each node that has one, in steps. `lastDecisions` is null on a standby, which shows
 * every node that fires as held.
 */
export function* nodeMarksOf(
  { remediationState, policies }: Pick<CandidateDeps, "remediationState" | "policies">,
  lastDecisions: readonly LastDecision[] | null,
): Generator<undefined, ReadonlyMap<NodeId, NodeMark>> {
  const { records } = remediationState;
  const marks = new Map<NodeId, NodeMark>();
  const mark = (node: NodeId, newMark: NodeMark) => {
    const known = marks.get(node);
    if (known === undefined || RANKS[newMark] > RANKS[known]) marks.set(node, newMark);
  };
  // Without a decision the condition of a firing node has ended, and `clear_for` runs.
  const undecided = lastDecisions === null ? "firing" : "pending";
  for (const active of policies.active()) {
    const { name } = active.policy.rule;
    const dryRun = isDryRun(active);
    yield* eachInSteps(records.timersOf(name), ([node, { state }]) => {
      if (state !== "firing") mark(node, "pending");
      else if (dryRun) mark(node, "shadow");
      else mark(node, isGivenUp(remediationState, name, node, false) ? "given_up" : undecided);
    });
  }
  yield* eachInSteps(records.openEpisodes(), ({ node, shadow: dryRun, state }) => {
    if (dryRun) mark(node, "shadow");
    else if (state === "acting") mark(node, "acting");
    else mark(node, state === "firing" || state === "suspended" ? undecided : "episode");
  });
  yield* eachInSteps(lastDecisions ?? [], (decision) => {
    if (isHold({ remediationState }, decision)) mark(decision.node, holdMark(decision));
  });
  yield* eachInSteps(holdsInForce(remediationState), ({ node }) => mark(node, "held"));
  yield* eachInSteps(records.actions(), ({ node, state }) => state === "awaiting" && mark(node, "awaiting"));
  return marks;
}

/** Returns the mark of a node that is held. It shows whether the node only waits for other actions. */
function holdMark({ reasons }: LastDecision): NodeMark {
  if (!reasons.every((reason) => reason === "in_flight" || reason === "canary")) return "firing";
  return reasons.includes("canary") ? "canary" : "in_flight";
}
