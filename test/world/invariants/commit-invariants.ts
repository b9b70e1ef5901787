import type { Action } from "../../../src/model/remediation/episode.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { isDown } from "../../../src/policy/episodes/episode-states.ts";
import { isDisruptedByUs, type PostAttempt, type SimulationParts } from "../daemon/simulation-parts.ts";

/** Outcomes of steps that observations end, unless one is in doubt for another reason. */
const OBSERVED_OUTCOMES: ReadonlySet<Action["outcome"]> = new Set(["verified", "ineffective", "in_doubt"]);

/**
 * Checks what was committed. A step of a listed node ends only if an answer has shown its node since its POST. If the step
 * left the node down, its episode says so in the same commit, so that the node counts as disrupted.
 */
export function checkCommit(changes: readonly JournalChange[], parts: SimulationParts): void {
  parts.regionOutages.recordCommit();
  for (const change of changes) if (change.kind === "action") checkStepEnd(change.row, parts);
}

function checkStepEnd(action: Action, parts: SimulationParts): void {
  const { id, node, state, outcome, detail } = action;
  if (state !== "ended" || !OBSERVED_OUTCOMES.has(outcome) || detail === "the node left the list") return;
  const post = parts.posts.findLast(({ action }) => action?.id === id);
  if (post === undefined) return;
  if (outcome !== "in_doubt" && parts.observations.observedAt(node) <= post.at)
    parts.addViolation("step ended by old data", `${id} is ${outcome}, but ${node} was not observed after its POST`);
  if (isLeftDown(post, parts) && !isDown(parts.recordedState.episodes.get(action.episode)!))
    parts.addViolation("node left down by a step not counted", `${id} is ${outcome}, and ${node} is still offline`);
}

/** Returns whether a node that was online before an action is down because of it, as the last answer has shown. */
const isLeftDown = (post: PostAttempt, parts: SimulationParts): boolean =>
  post.truth.status === "online" && parts.observations.isShownOffline(post.node) && isDisruptedByUs(parts, post);
