import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { inFlightGuard, maxActionsGuard } from "../../../src/policy/guards/limit-guards.ts";
import { actionOf, episodeOf } from "../../journal/arbitrary-changes.ts";
import { blockersOfGuard, NOON } from "../guard-case.ts";

describe("max_actions", () => {
  const blockers = (amount: number, sentAtTimes: readonly number[]) =>
    blockersOfGuard(
      maxActionsGuard,
      {},
      { safety: { maxActions: { amount, perMs: HOUR_MS } }, facts: { sentAtTimes } },
    );

  test("counts the actions sent and reports when the next one is allowed", () => {
    const ago = (...minutes: number[]) => minutes.map((each) => NOON - each * MINUTE_MS);
    expect(blockers(3, ago(1, 59))).toEqual([]);
    expect(blockers(3, ago(1, 59, 30))).toEqual(["max_actions: 3 actions within 1h; the limit is 3; the next in 1m"]);
    expect(blockers(2, ago(1, 59, 30))).toEqual(["max_actions: 3 actions within 1h; the limit is 2; the next in 30m"]);
  });

  test("reports how many actions are assumed because the journal is new", () => {
    const facts = { sentAtTimes: [NOON], assumedActionCount: 1 };
    const safety = { maxActions: { amount: 1, perMs: HOUR_MS } };
    expect(blockersOfGuard(maxActionsGuard, {}, { safety, facts })).toEqual([
      "max_actions: 1 action within 1h; the limit is 1; the next in 1h; 1 of them assumed because the journal is new",
    ]);
  });

  test("of 0 allows no action, now or later", () => {
    expect(blockers(0, [])).toEqual(["max_actions: 0 actions within 1h; the limit is 0"]);
    expect(blockers(0, [NOON])).toEqual(["max_actions: 1 action within 1h; the limit is 0"]);
  });

  test("handles more actions than a function call can have arguments", () => {
    const many = Array.from({ length: 300_000 }, (_, index) => NOON - index);
    expect(blockers(300_000, many)).toHaveLength(1);
  });
});

test("max_in_flight counts actions on other nodes, not those on the candidate itself", () => {
  const inFlight = [actionOf(1, "ep-1", { node: "node_0" }), actionOf(2, "ep-2", { node: "node_1" })];
  const held = (maxInFlight: number) =>
    blockersOfGuard(inFlightGuard, {}, { safety: { maxInFlight }, facts: { inFlight } });
  expect(held(2)).toEqual([]);
  expect(held(1)).toEqual(["in_flight: 1 action is in flight, not yet verified; the limit is 1: act-2 on node_1"]);
});

test("max_in_flight counts an action on the candidate itself if its episode is suspended and so does not have the node", () => {
  const actions = [actionOf(1, "ep-1", { node: "node_0", state: "sent", endedAt: null })];
  const episode = episodeOf(1, { node: "node_0", state: "acting", closedAt: null });
  const held = (state: "acting" | "suspended") =>
    blockersOfGuard(inFlightGuard, {}, { safety: { maxInFlight: 1 }, actions, episodes: [{ ...episode, state }] });
  expect(held("acting")).toEqual([]);
  expect(held("suspended")).toEqual([
    "in_flight: 1 action is in flight, not yet verified; the limit is 1: act-1 on node_0",
  ]);
});
