import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import { correlatedGuard, type Incident } from "../../../src/policy/guards/correlated-failure.ts";
import type { Candidate } from "../../../src/policy/guards/guard-types.ts";
import {
  disruptedDomainGuard,
  disruptedGuard,
  inFlightGuard,
  minOnlineGuard,
} from "../../../src/policy/guards/limit-guards.ts";
import { breakerGuard, stormGuard } from "../../../src/policy/guards/storm-and-breaker.ts";
import { actionOf, episodeOf } from "../../journal/arbitrary-changes.ts";
import type { NodeFixture } from "../../metrics/snapshot-fixtures.ts";
import {
  activePolicy,
  blockersOfGuard,
  buildCandidate,
  buildFacts,
  buildObservation,
  type GuardCaseOptions,
  hundredNodes,
  NOON,
  openEpisode,
} from "../guard-case.ts";

const NO_BLOCKERS: readonly string[] = [];

/** The hundred nodes, the first `count` of them offline. */
const withOffline = (count: number): readonly NodeFixture[] =>
  hundredNodes.map((node, index) => ({ ...node, status: index < count ? "offline" : "online" }));

/** Open episodes with an action in flight on these nodes. */
const actingEpisodes = (...nodes: readonly string[]): Episode[] =>
  nodes.map((node, index) => {
    const { country = "", region = "" } = hundredNodes.find(({ id }) => id === node)!;
    return episodeOf(10 + index, { node, country, region, state: "acting", acted: 1 });
  });

describe("a storm", () => {
  test("begins when more than max_unhealthy of the nodes are unhealthy", () => {
    expect(blockersOfGuard(stormGuard, {}, { nodes: withOffline(20) })).toEqual(NO_BLOCKERS);
    expect(blockersOfGuard(stormGuard, {}, { nodes: withOffline(21) })).toEqual([
      "storm: 21 of 100 nodes are unhealthy (21 offline); the limit is 20 (storm)",
    ]);
  });

  test("holds as soon as it is observed, even if the last evaluation found none", () => {
    const calm = { storm: null };
    expect(blockersOfGuard(stormGuard, {}, { nodes: withOffline(30), facts: calm })).toHaveLength(1);
  });

  test("that is over holds until its cooldown ends", () => {
    const over = { since: NOON - HOUR_MS, until: NOON + 90 * SECOND_MS };
    for (const isActive of [true, false]) {
      expect(blockersOfGuard(stormGuard, {}, { facts: { storm: { ...over, isActive } } })).toEqual([
        "storm_cooldown: the storm is over; held for another 1m30s",
      ]);
    }
  });

  test("does not begin in a fleet of three because of one unhealthy node", () => {
    const three = hundredNodes.slice(0, 3);
    expect(blockersOfGuard(stormGuard, {}, { nodes: three })).toEqual(NO_BLOCKERS);
    expect(blockersOfGuard(stormGuard, {}, { nodes: three, safety: { maxUnhealthy: { share: 0 } } })).toEqual([
      "storm: 1 of 3 nodes is unhealthy (1 offline); the limit is 0 (storm)",
    ]);
  });
});

describe("a correlated failure", () => {
  const incident: Incident = {
    domain: "r-0",
    from: NOON - 20 * MINUTE_MS,
    to: NOON - 19 * MINUTE_MS,
    nodes: new Set(Array.from({ length: 7 }, (_, index) => `node_${index}`)),
    until: null,
  };
  const blockers = (
    changed: Partial<Incident> = {},
    candidate: Partial<Candidate> = {},
    facts: GuardCaseOptions = {},
  ) => blockersOfGuard(correlatedGuard, candidate, { ...facts, facts: { incidents: [{ ...incident, ...changed }] } });

  test("holds its nodes and reports their number, their region and when it ends", () => {
    expect(blockers()).toEqual([
      "correlated: 7 nodes of the region r-0 failed together: treated as one incident; it ends 30m after fewer than 5 of them are unhealthy, and no later than 2026-03-01 17:41:00 UTC",
    ]);
    expect(blockers({ until: NOON + 90 * SECOND_MS })).toEqual([
      "correlated: 7 nodes of the region r-0 failed together: treated as one incident; too few of them are still unhealthy; it ends in 1m30s",
    ]);
  });

  test("holds only its own nodes, under every policy", () => {
    expect(blockers({}, { node: buildObservation({ id: "node_7" }) })).toEqual(NO_BLOCKERS);
    expect(blockers({}, { active: activePolicy({ name: "other" }) })).toHaveLength(1);
  });

  test("reports nodes without a region or country as (none)", () => {
    const safety = { correlated: { by: "country", nodes: 5, share: 0.5, withinMs: 5 * MINUTE_MS } } as const;
    expect(blockers({ domain: "" }, {}, { safety })[0]).toMatch(/^correlated: 7 nodes of the country \(none\) failed/);
  });
});

test("an open breaker holds every node until an operator resets it", () => {
  const open = { openedAt: Date.parse("2026-02-27T03:04:05Z"), nodes: 11, causes: "9 under high-cpu, 2 lost" };
  expect(blockersOfGuard(breakerGuard, {}, { facts: { breaker: { firings: [], open } } })).toEqual([
    "breaker: it opened at 2026-02-27 03:04:05 UTC after 11 nodes had fired or been lost (9 under high-cpu, 2 lost); reset-breaker closes it",
  ]);
  expect(blockersOfGuard(breakerGuard)).toEqual(NO_BLOCKERS);
});

test("the breaker of dry runs names the time at which it closes by itself", () => {
  const open = { openedAt: Date.parse("2026-02-27T03:04:05Z"), nodes: 1 };
  const dryRun = activePolicy({}, { mode: "dry_run" });
  expect(blockersOfGuard(breakerGuard, { active: dryRun }, { facts: { breaker: { firings: [], open } } })).toEqual([
    "breaker: it opened at 2026-02-27 03:04:05 UTC after 1 node had fired or been lost; the breaker of dry runs closes at 2026-02-27 04:04:05 UTC",
  ]);
});

describe("max_in_flight", () => {
  const sent = (number: number) => actionOf(number, "ep-9", { node: `node_${number}`, state: "sent", endedAt: null });
  const blockers = (maxInFlight: number, count: number) =>
    blockersOfGuard(
      inFlightGuard,
      {},
      {
        safety: { maxInFlight },
        actions: [1, 2, 3, 4].slice(0, count).map(sent),
        facts: { nameOf: (node) => node.replace("node_", "iad-") },
      },
    );

  test("counts and names the actions that are sent and not yet verified", () => {
    expect(blockers(2, 1)).toEqual(NO_BLOCKERS);
    expect(blockers(2, 2)).toEqual([
      "in_flight: 2 actions are in flight, not yet verified; the limit is 2: act-1 on iad-1, act-2 on iad-2",
    ]);
    expect(blockers(2, 4)).toEqual([
      "in_flight: 4 actions are in flight, not yet verified; the limit is 2: act-1 on iad-1, act-2 on iad-2, act-3 on iad-3 and 1 more",
    ]);
  });

  test("of 0 allows no action", () => {
    expect(blockers(0, 0)).toEqual(["in_flight: 0 actions are in flight, not yet verified; the limit is 0"]);
  });
});

describe("max_disrupted", () => {
  const blockers = (share: number, amount: number, ...nodes: string[]) =>
    blockersOfGuard(
      disruptedGuard,
      {},
      { safety: { maxDisrupted: { share, amount } }, episodes: actingEpisodes(...nodes) },
    );

  test("is the smaller of percent and amount, and counts the candidate", () => {
    expect(blockers(0.03, 5, "node_1", "node_2")).toEqual(NO_BLOCKERS);
    expect(blockers(0.02, 5, "node_1", "node_2")).toEqual(["disrupted: 2 nodes are disrupted; the limit is 2"]);
    expect(blockers(0.5, 2, "node_1", "node_2")).toHaveLength(1);
    expect(blockers(0.5, 3, "node_1", "node_2")).toEqual(NO_BLOCKERS);
  });

  test("counts a candidate that is already disrupted only once", () => {
    expect(blockers(0.02, 5, "node_0", "node_1")).toEqual(NO_BLOCKERS);
    expect(blockers(0.01, 5, "node_0", "node_1")).toHaveLength(1);
  });

  test("of 0 allows no node, and of any other percentage at least one", () => {
    expect(blockers(0, 5)).toEqual(["disrupted: 0 nodes are disrupted; the limit is 0"]);
    expect(blockers(0.5, 0)).toHaveLength(1);
    expect(blockers(0.0001, 5)).toEqual(NO_BLOCKERS);
    expect(blockers(0.0001, 5, "node_1")).toHaveLength(1);
  });
});

describe("max_disrupted_per", () => {
  const blockers = (per: Safety["maxDisruptedPer"], episodes: readonly Episode[], candidate: Partial<Candidate> = {}) =>
    blockersOfGuard(disruptedDomainGuard, candidate, { safety: { maxDisruptedPer: per }, episodes });

  test("counts the nodes of the candidate's region, and of its country", () => {
    // In region r-0 and country DE; r-1 and DE; r-3 and FR.
    const all = actingEpisodes("node_5", "node_1", "node_3");
    expect(blockers({ region: 2, country: 3 }, all)).toEqual(NO_BLOCKERS);
    expect(blockers({ region: 1, country: null }, all)).toEqual([
      "disrupted_domain: 1 node is disrupted in the region r-0; the limit is 1",
    ]);
    expect(blockers({ region: null, country: 2 }, all)).toEqual([
      "disrupted_domain: 2 nodes are disrupted in the country DE; the limit is 2",
    ]);
    expect(blockers({ region: 1, country: 2 }, all)).toHaveLength(2);
    expect(blockers({ region: null, country: null }, all)).toEqual(NO_BLOCKERS);
  });

  test("counts a candidate that is already disrupted once, and 0 allows no node", () => {
    expect(blockers({ region: 1, country: null }, actingEpisodes("node_0"))).toEqual(NO_BLOCKERS);
    expect(blockers({ region: 0, country: null }, [])).toHaveLength(1);
  });

  test("counts the nodes of the region in which the candidate's episode began, where it would count too", () => {
    const moved = { node: buildObservation({ region: "" }), episode: openEpisode({ country: "DE", region: "r-0" }) };
    expect(blockers({ region: 1, country: null }, actingEpisodes("node_5"), moved)).toEqual([
      "disrupted_domain: 1 node is disrupted in the region r-0; the limit is 1",
    ]);
    expect(blockers({ region: 2, country: null }, actingEpisodes("node_5"), moved)).toEqual(NO_BLOCKERS);
  });

  test("treats nodes without a region as one region", () => {
    expect(blockers({ region: 0, country: null }, [], { node: buildObservation({ region: "" }) })).toEqual([
      "disrupted_domain: 0 nodes are disrupted in the region (none); the limit is 0",
    ]);
  });
});

describe("min_online_per", () => {
  const hot = buildObservation({ id: "node_5", status: "online" });
  /** The region r-0 with `count` online nodes, including node_5. */
  const online = (count: number): readonly NodeFixture[] =>
    hundredNodes.map((node, index) =>
      node.region !== "r-0" ? node : { ...node, status: index / 5 >= 1 && index / 5 <= count ? "online" : "offline" },
    );
  const blockers = (count: number, region: number, candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) =>
    blockersOfGuard(
      minOnlineGuard,
      { node: hot, ...candidate },
      { nodes: online(count), safety: { minOnlinePer: { region, country: null } }, ...facts },
    );

  test("holds an online node unless enough others stay online", () => {
    expect(blockers(3, 2)).toEqual(NO_BLOCKERS);
    expect(blockers(2, 2)).toEqual(["min_online: 1 node of the region r-0 would stay online; the minimum is 2"]);
    expect(blockers(1, 1)).toHaveLength(1);
    expect(blockers(1, 0)).toEqual(NO_BLOCKERS);
  });

  test("does not hold an offline node", () => {
    expect(blockers(0, 5, { node: buildObservation({ status: "offline" }) })).toEqual(NO_BLOCKERS);
  });

  test("does not count a disrupted node as online, even if the list shows it as online", () => {
    expect(blockers(3, 2, {}, { episodes: actingEpisodes("node_10") })).toEqual([
      "min_online: 1 node of the region r-0 would stay online; the minimum is 2",
    ]);
    expect(blockers(4, 2, {}, { episodes: actingEpisodes("node_10") })).toEqual(NO_BLOCKERS);
    expect(blockers(3, 2, {}, { episodes: actingEpisodes("node_5") })).toEqual(NO_BLOCKERS);
  });

  test("reports both the region and the country", () => {
    const two = hundredNodes.map((node) => ({
      ...node,
      status: node.id === "node_5" ? ("online" as const) : "offline",
    }));
    const safety = { minOnlinePer: { region: 1, country: 1 } };
    expect(blockersOfGuard(minOnlineGuard, { node: hot }, { nodes: two as readonly NodeFixture[], safety })).toEqual([
      "min_online: 0 nodes of the region r-0 would stay online; the minimum is 1",
      "min_online: 0 nodes of the country DE would stay online; the minimum is 1",
    ]);
  });
});

test("the candidate's own episode does not hold it", () => {
  const own = openEpisode({ acted: 1 });
  const facts = buildFacts({ episodes: [own] });
  const candidate = buildCandidate({ episode: own });
  for (const guard of [disruptedGuard, disruptedDomainGuard, inFlightGuard]) {
    expect(guard.check(candidate, facts)).toEqual([]);
  }
});
