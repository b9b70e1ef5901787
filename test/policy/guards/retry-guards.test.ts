import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import type { Candidate } from "../../../src/policy/guards/guard-types.ts";
import { holdGuard } from "../../../src/policy/guards/node-guards.ts";
import { backoffGuard, cooldownGuard, retryGuard } from "../../../src/policy/guards/retry-guards.ts";
import { rebootOffline } from "../../harness/policies.ts";
import { closedEpisodeOf, holdOf } from "../../journal/arbitrary-changes.ts";
import { activePolicy, blockersOfGuard, NOON, openEpisode } from "../guard-case.ts";

const NO_BLOCKERS: readonly string[] = [];

describe("safety.cooldown", () => {
  const endedAgo = (agoMs: number, past: Partial<Episode> = {}, candidate: Partial<Candidate> = {}) =>
    blockersOfGuard(cooldownGuard, candidate, {
      episodes: [closedEpisodeOf(3, NOON - agoMs, { node: "node_0", policy: "cool-hot-cpu", acted: 1, ...past })],
    });

  test("holds a node for that time after its last episode, under any policy", () => {
    expect(endedAgo(29 * MINUTE_MS)).toEqual(["cooldown: ep-3 ended 29m ago; 1m left"]);
    expect(endedAgo(30 * MINUTE_MS - 1)).toEqual(["cooldown: ep-3 ended 30m ago; 1s left"]);
    expect(endedAgo(30 * MINUTE_MS)).toEqual(NO_BLOCKERS);
  });

  test("applies only to that node, and separately to dry runs", () => {
    expect(endedAgo(0, { node: "node_1" })).toEqual(NO_BLOCKERS);
    expect(endedAgo(0, { dryRun: true })).toEqual(NO_BLOCKERS);
    expect(endedAgo(0, { dryRun: true }, { active: activePolicy({}, { mode: "dry_run" }) })).toHaveLength(1);
  });

  test("does not follow an episode without an action unless it was given up", () => {
    expect(endedAgo(0, { acted: 0, state: "cleared" })).toEqual(NO_BLOCKERS);
    expect(endedAgo(0, { acted: 0, state: "given_up" })).toHaveLength(1);
  });

  test("does not hold an episode that has acted, but one that has only begun", () => {
    expect(endedAgo(0, {}, { episode: openEpisode({ acted: 1 }) })).toEqual(NO_BLOCKERS);
    expect(endedAgo(0, {}, { episode: openEpisode({ acted: 0 }) })).toHaveLength(1);
  });

  test("counts from the last episode to end", () => {
    const of = (number: number, agoMs: number) => closedEpisodeOf(number, NOON - agoMs, { node: "node_0", acted: 1 });
    expect(blockersOfGuard(cooldownGuard, {}, { episodes: [of(5, MINUTE_MS), of(4, 20 * MINUTE_MS)] })).toEqual([
      "cooldown: ep-5 ended 1m ago; 29m left",
    ]);
  });
});

describe("retry", () => {
  const past = (number: number, agoMs: number, more: Partial<Episode> = {}) =>
    closedEpisodeOf(number, NOON - agoMs, { node: "node_0", acted: 1, ...more });
  const blockers = (episodes: readonly Episode[], candidate: Partial<Candidate> = {}) =>
    blockersOfGuard(retryGuard, candidate, { episodes });

  test("limits the episodes of a node within forget_after, including healed ones", () => {
    const limit = (next: string) => [`retry_limit: 2 episodes within 1d; the limit is 2; the next in ${next}`];
    expect(blockers([past(3, 9 * HOUR_MS)])).toEqual(NO_BLOCKERS);
    expect(blockers([past(3, 9 * HOUR_MS), past(4, 24 * HOUR_MS - 1)])).toEqual(limit("1s"));
    expect(blockers([past(3, 9 * HOUR_MS), past(4, 24 * HOUR_MS)])).toEqual(NO_BLOCKERS);
    expect(blockers([past(3, 9 * HOUR_MS), past(4, 8 * HOUR_MS), past(5, 7 * HOUR_MS)])).toEqual([
      "retry_limit: 3 episodes within 1d; the limit is 2; the next in 16h",
    ]);
  });

  test("with episodes: 0 allows none", () => {
    const { retry } = rebootOffline();
    const none = activePolicy({ retry: { ...retry, episodes: 0 } });
    expect(blockers([], { active: none })).toEqual([
      "retry_limit: 0 episodes within 1d; the limit is 0; none is allowed",
    ]);
  });

  test("waits for `every` after an episode that did not heal the node", () => {
    expect(blockers([past(3, 6 * HOUR_MS - 1, { state: "given_up" })])).toEqual([
      "retry_wait: ep-3 did not heal it; the next attempt in 1s",
    ]);
    expect(blockers([past(3, 6 * HOUR_MS, { state: "given_up" })])).toEqual(NO_BLOCKERS);
    expect(blockers([past(3, HOUR_MS, { state: "healed" })])).toEqual(NO_BLOCKERS);
  });

  test("holds a node that was given up until it is healthy or released, and then counts from zero", () => {
    const failed = [past(3, 2 * HOUR_MS, { state: "given_up" }), past(4, HOUR_MS, { state: "given_up" })];
    const given = {
      kind: "given_up",
      policy: "reboot-offline",
      reason: "2 episodes in a row did not heal it",
    } as const;
    const until = (end: number | null) =>
      blockersOfGuard(retryGuard, {}, { episodes: failed, holds: [holdOf("node_0", { ...given, until: end })] });
    expect(until(null)).toEqual([
      'retry_limit: given up: 2 episodes in a row did not heal it; the hold ends when the node is healthy, or with "release node_0"',
    ]);
    expect(until(NOON - HOUR_MS)).toEqual(NO_BLOCKERS);
    expect(blockersOfGuard(holdGuard, {}, { holds: [holdOf("node_0", given)] })).toEqual(NO_BLOCKERS);
    const other = holdOf("node_0", { ...given, policy: "another" });
    expect(blockersOfGuard(retryGuard, {}, { holds: [other] })).toEqual(NO_BLOCKERS);
  });

  test("reports both the limit and the wait", () => {
    const failed = [past(3, 2 * HOUR_MS, { state: "given_up" }), past(4, HOUR_MS, { state: "given_up", acted: 0 })];
    expect(blockers(failed)).toEqual([
      "retry_limit: 2 episodes within 1d; the limit is 2; the next in 22h",
      "retry_wait: ep-4 did not heal it; the next attempt in 5h",
    ]);
  });

  test("counts only episodes of this policy and node with an action", () => {
    const others = [
      { policy: "another" },
      { node: "node_1" },
      { dryRun: true },
      { acted: 0, state: "cleared" as const },
    ];
    const two = (more: Partial<Episode>) => [past(3, HOUR_MS, more), past(4, HOUR_MS, more)];
    for (const more of others) expect(blockers(two(more))).toEqual(NO_BLOCKERS);
    expect(blockers(two({ dryRun: true }), { active: activePolicy({}, { mode: "dry_run" }) })).toHaveLength(1);
  });

  test("does not hold an episode that has acted", () => {
    const failed = [past(3, HOUR_MS, { state: "given_up" }), past(4, HOUR_MS, { state: "given_up" })];
    expect(blockers(failed, { episode: openEpisode({ acted: 1 }) })).toEqual(NO_BLOCKERS);
    expect(blockers(failed, { episode: openEpisode({ acted: 0 }) })).toHaveLength(2);
  });
});

describe("a step that was not executed", () => {
  const blockers = (episode: Partial<Episode>) => blockersOfGuard(backoffGuard, { episode: openEpisode(episode) });

  test("is not attempted again before its backoff ends", () => {
    expect(blockers({ failures: 3, retryAt: NOON + 1 })).toEqual([
      "backoff: 3 attempts in a row were not executed; the next in 1s",
    ]);
    expect(blockers({ failures: 1, retryAt: NOON + 1 })).toEqual([
      "backoff: the last attempt was not executed; the next in 1s",
    ]);
    expect(blockers({ failures: 3, retryAt: NOON })).toEqual(NO_BLOCKERS);
    expect(blockers({})).toEqual(NO_BLOCKERS);
    expect(blockersOfGuard(backoffGuard)).toEqual(NO_BLOCKERS);
  });

  test("is attempted again after the delay of a 429", () => {
    expect(blockers({ failures: 0, retryAt: NOON + 7 * SECOND_MS })).toEqual([
      "backoff: the service answered 429; the next in 7s",
    ]);
    expect(blockers({ failures: 1, limited: 2, retryAt: NOON + SECOND_MS })).toEqual([
      "backoff: 3 attempts in a row were not executed; the next in 1s",
    ]);
  });
});
