import { isDeepStrictEqual } from "node:util";
import type { Expectation } from "../config/schema/policy-test.ts";
import { type Action, actionName } from "../model/remediation/episode.ts";
import type { Verdict } from "./evaluation.ts";

/** State of a node under a policy at the time of an expectation. */
export interface ObservedOutcome {
  readonly verdict: Verdict;
  /** Why the verdict is unknown. */
  readonly unknowns: readonly string[];
  readonly timer: "inactive" | "pending" | "firing";
  readonly blockers: readonly { readonly reason: string; readonly detail: string }[];
  /** The policy's actions on the node, oldest first. */
  readonly actions: readonly Pick<Action, "request" | "outcome">[];
}

/** Returns a line for each difference from an expectation. */
export function findMismatches(expected: Expectation, seen: ObservedOutcome): readonly string[] {
  const lines: string[] = [];
  const cause = seen.unknowns.length === 0 ? "" : ` (${seen.unknowns.join(", ")})`;
  if (expected.verdict !== undefined && expected.verdict !== seen.verdict) {
    lines.push(`verdict: expected ${expected.verdict}, got ${seen.verdict}${cause}`);
  }
  if (expected.timer !== undefined && expected.timer !== seen.timer) {
    lines.push(`timer: expected ${expected.timer}, got ${seen.timer}`);
  }
  const reasons = [...new Set(seen.blockers.map(({ reason }) => reason))].toSorted();
  const details = seen.blockers.map(({ reason, detail }) => `\n    ${reason}: ${detail}`).join("");
  if (expected.held !== undefined && !isDeepStrictEqual(expected.held.toSorted(), reasons)) {
    lines.push(`held: expected ${listText(expected.held.toSorted())}, got ${listText(reasons)}${details}`);
  }
  if (expected.actions !== undefined && !actionsMatch(expected.actions, seen.actions)) {
    const why = expected.held === undefined && seen.actions.length < expected.actions.length ? details : "";
    lines.push(`actions: expected ${listText(expected.actions)}, got ${listText(seen.actions.map(outcomeText))}${why}`);
  }
  return lines;
}

const outcomeText = ({ request, outcome }: ObservedOutcome["actions"][number]): string =>
  outcome === null ? actionName(request) : `${actionName(request)}: ${outcome}`;

/** Compares outcomes only where the expectation names one. */
const actionsMatch = (expected: readonly string[], seen: ObservedOutcome["actions"]): boolean =>
  expected.length === seen.length &&
  expected.every((text, index) =>
    text.includes(":") ? text === outcomeText(seen[index]!) : text === actionName(seen[index]!.request),
  );

const listText = (texts: readonly string[]): string => (texts.length === 0 ? "none" : texts.join(", "));
