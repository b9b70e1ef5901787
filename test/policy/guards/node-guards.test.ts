import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { NodeStatus } from "../../../src/model/node.ts";
import type { Action, Episode, NodeHold } from "../../../src/model/remediation/episode.ts";
import { holdGuard, otherEpisodeGuard, protectedGuard, statusGuard } from "../../../src/policy/guards/node-guards.ts";
import { actionOf, episodeOf, holdOf } from "../../journal/arbitrary-changes.ts";
import {
  activePolicy,
  blockersOfGuard,
  buildCandidate,
  buildFacts,
  buildObservation,
  type GuardCaseOptions,
  NOON,
  openEpisode,
} from "../guard-case.ts";

const NO_BLOCKERS: readonly string[] = [];

test("a protected node is held, and so is one for which safety.protected is unknown", () => {
  const blockers = (answer: "true" | "false" | "unknown") =>
    blockersOfGuard(protectedGuard, { node: buildObservation({ protected: answer }) });
  expect(blockers("true")).toEqual(["protected: the node is protected by safety.protected"]);
  expect(blockers("unknown")).toEqual(["protected: the fields that safety.protected reads are unknown"]);
  expect(blockers("false")).toEqual(NO_BLOCKERS);
});

describe("a hold", () => {
  const held = (hold: Partial<NodeHold>) => blockersOfGuard(holdGuard, {}, { holds: [holdOf("node_0", hold)] });

  test("of an operator lasts until the node is released", () => {
    expect(held({ kind: "held", reason: "disk is being swapped" })).toEqual(["held: disk is being swapped"]);
  });

  test("of an operator on a node that others acted on holds it for both reasons, even once the first has expired", () => {
    const ownership = { at: NOON - MINUTE_MS, until: NOON + 14 * MINUTE_MS, reason: "it was rebooted by others" };
    const both = { kind: "held", reason: "a test", ownership } as const;
    const owned = "ownership: it was rebooted by others; for another 14m";
    expect(held({ ...both, until: NOON + MINUTE_MS })).toEqual(["held: a test; for another 1m", owned]);
    expect(held({ ...both, until: NOON })).toEqual([owned]);
  });

  test("applies only to its node", () => {
    expect(blockersOfGuard(holdGuard, {}, { holds: [holdOf("node_1")] })).toEqual(NO_BLOCKERS);
  });

  test("that is a veto expires, and applies only to its policy", () => {
    const veto = {
      kind: "vetoed",
      policy: "reboot-offline",
      reason: "a person lifted the quarantine of ep-7",
    } as const;
    expect(held({ ...veto, until: NOON + HOUR_MS })).toEqual([
      "vetoed: a person lifted the quarantine of ep-7; for another 1h",
    ]);
    expect(held({ ...veto, until: NOON + 1 })).toEqual([
      "vetoed: a person lifted the quarantine of ep-7; for another 1s",
    ]);
    expect(held({ ...veto, until: NOON })).toEqual(NO_BLOCKERS);
    expect(held({ ...veto, policy: "another", until: NOON + HOUR_MS })).toEqual(NO_BLOCKERS);
  });

  test("and a veto are both reported", () => {
    const holds = [holdOf("node_0"), holdOf("node_0", { kind: "vetoed", policy: "reboot-offline", until: NOON + 1 })];
    expect(holdGuard.check(buildCandidate(), buildFacts({ holds })).map(({ reason }) => reason)).toEqual([
      "held",
      "vetoed",
    ]);
  });
});

describe("the status guard", () => {
  const blockers = (status: NodeStatus, episode: Episode | null = null, facts: GuardCaseOptions = {}) =>
    blockersOfGuard(statusGuard, { node: buildObservation({ status }), episode }, facts);

  test("holds a node in maintenance, even during our quarantine", () => {
    expect(blockers("maintenance")).toEqual(["status: it is in maintenance"]);
    const quarantine = { action: "act-2", endsAt: NOON + 1, seen: true, seenOnline: 0, overdue: false };
    expect(blockers("maintenance", openEpisode({ acted: 1, quarantine }))).toEqual(["status: it is in maintenance"]);
  });

  test("holds a node of unknown status", () => {
    expect(blockers("unknown")).toEqual(["status: its status is unknown"]);
  });

  test.each(["online", "offline"] as const)("does not hold a node that is %s", (status) => {
    expect(blockers(status)).toEqual(NO_BLOCKERS);
  });

  test("treats a reboot as ours only if we sent one in the last hour, under any policy", () => {
    const notOurs = ["status: the node is rebooting, not caused by an action of the daemon"];
    const episode = openEpisode({ acted: 1 });
    const sent = actionOf(2, "ep-1", { node: "node_0", sentAt: NOON - MINUTE_MS });
    const afterAction = (changes: Partial<Action>) =>
      blockers("rebooting", episode, { episodes: [episode], actions: [{ ...sent, ...changes }] });
    expect(blockers("rebooting")).toEqual(notOurs);
    expect(blockers("rebooting", episode)).toEqual(notOurs);
    expect(afterAction({ request: { kind: "disconnect" } })).toEqual(notOurs);
    expect(afterAction({ sentAt: null })).toEqual(notOurs);
    expect(afterAction({ episode: "ep-9" })).toEqual(notOurs);
    expect(afterAction({ outcome: "failed" })).toEqual(notOurs);
    expect(afterAction({ sentAt: NOON - HOUR_MS - 1 })).toEqual(notOurs);
    expect(afterAction({})).toEqual(NO_BLOCKERS);
    const another = episodeOf(9, { node: "node_0", policy: "another", acted: 1 });
    const actions = [{ ...sent, episode: "ep-9" }];
    expect(blockers("rebooting", null, { episodes: [another], actions })).toEqual([
      "status: it is being rebooted by act-2 (policy reboot-offline)",
    ]);
    const over = { ...another, state: "healed", closedAt: NOON } as const;
    expect(blockers("rebooting", null, { episodes: [over], actions })).toEqual([
      "status: the node is rebooting, after an action of the daemon",
    ]);
  });

  test("treats a quarantine as ours until the time at which it should end", () => {
    const notOurs = ["ownership: the node is in a quarantine that the daemon did not start"];
    const until = (endsAt: number) =>
      openEpisode({
        acted: 1,
        quarantine: { action: "act-2", endsAt, seen: true, seenOnline: 0, overdue: false },
      });
    expect(blockers("quarantined")).toEqual(notOurs);
    expect(blockers("quarantined", openEpisode({ acted: 1 }))).toEqual(notOurs);
    expect(blockers("quarantined", until(NOON + 1))).toEqual(NO_BLOCKERS);
    const real = { episodes: [{ ...until(NOON + 1), id: "ep-7", policy: "cut-off" }] };
    expect(blockersOfGuard(statusGuard, { node: buildObservation({ status: "quarantined" }) }, real)).toEqual([
      "status: it is quarantined by ep-7 (policy cut-off)",
    ]);
    const over = { episodes: [{ ...until(NOON), id: "ep-7", policy: "cut-off" }] };
    expect(blockersOfGuard(statusGuard, { node: buildObservation({ status: "quarantined" }) }, over)).toEqual(notOurs);
    expect(blockers("quarantined", until(NOON))).toEqual([
      "ownership: the daemon's quarantine should have ended 0s ago, but the node is still quarantined",
    ]);
    expect(blockers("quarantined", until(NOON - 90 * SECOND_MS))).toEqual([
      "ownership: the daemon's quarantine should have ended 1m30s ago, but the node is still quarantined",
    ]);
  });
});

describe("the guard against a second episode of a node", () => {
  const other = openEpisode({ policy: "cool-hot-cpu" });

  test("holds a node that is in an episode of another policy", () => {
    expect(blockersOfGuard(otherEpisodeGuard, {}, { episodes: [other] })).toEqual([
      "other_episode: the node is in ep-1 of the policy cool-hot-cpu",
    ]);
    expect(
      blockersOfGuard(otherEpisodeGuard, { node: buildObservation({ id: "node_1" }) }, { episodes: [other] }),
    ).toEqual(NO_BLOCKERS);
  });

  test("ignores the candidate's own episode", () => {
    const own = openEpisode();
    expect(blockersOfGuard(otherEpisodeGuard, { episode: own }, { episodes: [own] })).toEqual(NO_BLOCKERS);
  });

  test("keeps dry runs and real episodes apart", () => {
    expect(blockersOfGuard(otherEpisodeGuard, {}, { episodes: [{ ...other, dryRun: true }] })).toEqual(NO_BLOCKERS);
    expect(
      blockersOfGuard(otherEpisodeGuard, { active: activePolicy({}, { mode: "dry_run" }) }, { episodes: [other] }),
    ).toEqual(NO_BLOCKERS);
  });
});
