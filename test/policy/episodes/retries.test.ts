import { expect, test } from "vitest";
import { HOUR_MS } from "../../../src/base/duration.ts";
import type { Episode, NodeHold } from "../../../src/model/remediation/episode.ts";
import { consecutiveFailures, givenUpHold, releasedAt } from "../../../src/policy/episodes/attempts.ts";
import { countsAsAttempt } from "../../../src/policy/episodes/episode-states.ts";
import { rebootOffline } from "../../harness/policies.ts";
import { closedEpisodeOf, holdOf } from "../../journal/arbitrary-changes.ts";
import { buildFacts } from "../guard-case.ts";

const spec = rebootOffline({ retry: { episodes: 9, everyMs: HOUR_MS, forgetAfterMs: 10 } });

/** An episode of the policy that did not heal the node. It lasted five milliseconds. */
const failed = (number: number, closedAt: number, overrides: Partial<Episode> = {}): Episode =>
  closedEpisodeOf(number, closedAt, {
    node: "node_0",
    state: "given_up",
    acted: 1,
    openedAt: closedAt - 5,
    ...overrides,
  });

/** Returns the failures in a row before an episode that begins at `now`, which is forget_after after 110. */
const inRow = (episodes: readonly Episode[], holds: readonly NodeHold[] = [], now = 120) =>
  consecutiveFailures(buildFacts({ episodes, holds }).records, "node_0", spec, now);

test("an episode counts as an attempt if it has acted or was given up", () => {
  expect(countsAsAttempt(failed(1, 10, { acted: 0 }))).toBe(true);
  expect(countsAsAttempt(failed(1, 10, { acted: 1, state: "cleared" }))).toBe(true);
  expect(countsAsAttempt(failed(1, 10, { acted: 0, state: "cleared" }))).toBe(false);
});

test("consecutive failures end with the last attempt, and none precedes one that healed the node", () => {
  expect(inRow([])).toEqual([]);
  expect(inRow([failed(1, 110)])).toEqual(["ep-1"]);
  expect(inRow([failed(1, 105), failed(2, 110, { state: "healed" })])).toEqual([]);
  expect(inRow([failed(1, 105, { state: "healed" }), failed(2, 110)])).toEqual(["ep-2"]);
});

test("consecutive failures include those that the last one names, although they are no longer in memory", () => {
  expect(inRow([failed(3, 110, { failedBefore: ["ep-1", "ep-2"] })])).toEqual(["ep-1", "ep-2", "ep-3"]);
});

test("consecutive failures exclude other policies and nodes, dry runs and episodes without an action", () => {
  const others: Partial<Episode>[] = [{ policy: "another" }, { node: "node_1" }, { dryRun: true }];
  for (const other of [...others, { state: "cleared", acted: 0 } as const]) {
    expect(inRow([failed(1, 110), failed(2, 115, other)])).toEqual(["ep-1"]);
  }
});

test("an attempt that begins later than forget_after starts a new sequence", () => {
  expect(inRow([failed(2, 110, { failedBefore: ["ep-1"] })], [], 121)).toEqual([]);
});

test("attempts before an operator released the node don't count", () => {
  const released = holdOf("node_0", { kind: "given_up", policy: spec.name, until: 110 });
  expect(inRow([failed(1, 110)], [released])).toEqual([]);
  expect(inRow([failed(1, 111)], [released])).toEqual(["ep-1"]);
  expect(inRow([failed(1, 110)], [{ ...released, policy: "another" }])).toEqual(["ep-1"]);
});

test("a node is given up until its hold has an end, which is when it was released", () => {
  const of = (hold: Partial<NodeHold>) => {
    const { records } = buildFacts({
      holds: [holdOf("node_0", { kind: "given_up", policy: spec.name, ...hold })],
    });
    return [givenUpHold(records, "node_0", spec.name) !== null, releasedAt(records, "node_0", spec.name)];
  };
  expect(of({})).toEqual([true, 0]);
  expect(of({ until: 7 })).toEqual([false, 7]);
  expect(of({ policy: "another", until: 7 })).toEqual([false, 0]);
  expect(of({ kind: "vetoed", until: 7 })).toEqual([false, 0]);
});
