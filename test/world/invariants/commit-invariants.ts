import type { Action } from "../../../src/model/remediation/episode.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** Checks what was committed: a step of a listed node ends only if an answer has shown its node since its POST. */
export function checkCommit(changes: readonly JournalChange[], parts: SimulationParts): void {
  parts.regionOutages.recordCommit();
  for (const change of changes) if (change.kind === "action") checkStepEnd(change.row, parts);
}

function checkStepEnd({ id, node, state, outcome, detail }: Action, parts: SimulationParts): void {
  if (state !== "ended" || (outcome !== "verified" && outcome !== "ineffective")) return;
  if (detail === "the node left the list") return;
  const post = parts.posts.findLast(({ action }) => action?.id === id);
  if (post !== undefined && parts.observations.observedAt(node) <= post.at)
    parts.addViolation("step ended by old data", `${id} is ${outcome}, but ${node} was not observed after its POST`);
}
