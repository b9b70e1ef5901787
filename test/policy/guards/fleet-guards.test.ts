import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import type { Incident } from "../../../src/policy/guards/correlated-failure.ts";
import { breakerGuard, correlatedGuard, stormGuard } from "../../../src/policy/guards/fleet-guards.ts";
import type { Candidate, GuardRow } from "../../../src/policy/guards/guard.ts";
import {
  disruptedDomainGuard,
  disruptedGuard,
  inFlightGuard,
  maxActionsGuard,
  minOnlineGuard,
} from "../../../src/policy/guards/limit-guards.ts";
import { actionOf, episodeOf } from "../../journal/arbitrary-changes.ts";
import type { NodeFixture } from "../../metrics/snapshot-fixtures.ts";
import {
  activePolicy,
  blockerTexts,
  buildCandidate,
  buildFacts,
  buildObservation,
  type GuardCaseOptions,
  hundredNodes,
  NOON,
  openEpisode,
} from "../guard-case.ts";

const blockersOfGuard = (guard: GuardRow, candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) =>
  blockerTexts(guard.check(buildCandidate(candidate), buildFacts(facts)));

const NO_BLOCKERS: readonly string[] = [];

/** The hundred nodes, of which the first so many are offline. */
const withOffline = (count: number): readonly NodeFixture[] =>
  hundredNodes.map((node, index) => ({ ...node, status: index < count ? "offline" : "online" }));

/** Open episodes of nodes that are being worked on. */
const actingEpisodes = (...nodes: readonly string[]): Episode[] =>
  nodes.map((node, index) => episodeOf(10 + index, { node, state: "acting", acted: 1 }));

describe("a storm", () => {
  test("is more than the share of the fleet that is unhealthy, and the share itself is none", () => {
    expect(blockersOfGuard(stormGuard, {}, { nodes: withOffline(20) })).toEqual(NO_BLOCKERS);
    expect(blockersOfGuard(stormGuard, {}, { nodes: withOffline(21) })).toEqual([
      "storm: 21 of 100 nodes are unhealthy; the limit is 20 (storm)",
    ]);
  });

  test("holds as soon as it is seen, though the last round saw none", () => {
    const calm = { storm: null };
    expect(blockersOfGuard(stormGuard, {}, { nodes: withOffline(30), facts: calm })).toHaveLength(1);
  });

  test("that is over holds until it has cooled down", () => {
    const over = { since: NOON - HOUR_MS, until: NOON + 90 * SECOND_MS };
    for (const blowing of [true, false]) {
      expect(blockersOfGuard(stormGuard, {}, { facts: { storm: { ...over, blowing } } })).toEqual([
        "storm_cooldown: the storm is over; held for another 1m30s",
      ]);
    }
  });

  test("is none on a fleet of three for the one node that is unhealthy", () => {
    const three = hundredNodes.slice(0, 3);
    expect(blockersOfGuard(stormGuard, {}, { nodes: three })).toEqual(NO_BLOCKERS);
    expect(blockersOfGuard(stormGuard, {}, { nodes: three, safety: { maxUnhealthy: { share: 0 } } })).toEqual([
      "storm: 1 of 3 nodes are unhealthy; the limit is 0 (storm)",
    ]);
  });
});

describe("one incident", () => {
  const incident: Incident = {
    place: "r-0",
    from: NOON - 20 * MINUTE_MS,
    to: NOON - 19 * MINUTE_MS,
    nodes: new Set(Array.from({ length: 7 }, (_, index) => `node_${index}`)),
    until: null,
  };
  const told = (changed: Partial<Incident> = {}, candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) =>
    blockersOfGuard(correlatedGuard, candidate, { ...facts, facts: { incidents: [{ ...incident, ...changed }] } });

  test("holds the nodes that failed with it, names their number and place, and says how it ends", () => {
    expect(told()).toEqual([
      "correlated: 7 nodes of the region r-0 failed together: treated as one incident; it ends 30m after fewer than 5 of them are unhealthy, at the latest at 2026-03-01T17:41:00.000Z",
    ]);
    expect(told({ until: NOON + 90 * SECOND_MS })).toEqual([
      "correlated: 7 nodes of the region r-0 failed together: treated as one incident; it is over, and ends in 1m30s",
    ]);
  });

  test("holds its members alone, under every policy", () => {
    expect(told({}, { node: buildObservation({ id: "node_7" }) })).toEqual(NO_BLOCKERS);
    expect(told({}, { active: activePolicy({ name: "other" }) })).toHaveLength(1);
  });

  test("of nodes without a region are reported as such, and are grouped by country if safety says so", () => {
    const safety = { correlated: { by: "country", nodes: 5, share: 0.5, withinMs: 5 * MINUTE_MS } } as const;
    expect(told({ place: "" }, {}, { safety })[0]).toMatch(/^correlated: 7 nodes of the country \(none\) failed/);
  });
});

test("an open breaker holds every node until an operator resets it", () => {
  const open = { firings: [], open: { openedAt: Date.parse("2026-02-27T03:04:05Z"), nodes: 11 } };
  expect(blockersOfGuard(breakerGuard, {}, { facts: { breaker: open } })).toEqual([
    "breaker: it opened at 2026-02-27T03:04:05.000Z when 11 nodes fired; reset-breaker closes it",
  ]);
  expect(blockersOfGuard(breakerGuard)).toEqual(NO_BLOCKERS);
});

describe("max_in_flight", () => {
  const sent = (number: number) => actionOf(number, "ep-9", { node: `node_${number}`, state: "sent", endedAt: null });
  const told = (maxInFlight: number, count: number) =>
    blockersOfGuard(inFlightGuard, {}, { safety: { maxInFlight }, actions: [1, 2, 3, 4].slice(0, count).map(sent) });

  test("counts what was sent and is not yet verified, and names it", () => {
    expect(told(2, 1)).toEqual(NO_BLOCKERS);
    expect(told(2, 2)).toEqual([
      "in_flight: 2 of 2 actions in flight are not yet verified: act-1 on node_1, act-2 on node_2",
    ]);
    expect(told(2, 4)).toEqual([
      "in_flight: 4 of 2 actions in flight are not yet verified: act-1 on node_1, act-2 on node_2, act-3 on node_3",
    ]);
  });

  test("0 allows none", () => {
    expect(told(0, 0)).toEqual(["in_flight: 0 of 0 actions in flight are not yet verified"]);
  });
});

describe("max_disrupted", () => {
  const told = (share: number, amount: number, ...nodes: string[]) =>
    blockersOfGuard(
      disruptedGuard,
      {},
      { safety: { maxDisrupted: { share, amount } }, episodes: actingEpisodes(...nodes) },
    );

  test("is the smaller of share and amount, with the candidate counted", () => {
    expect(told(0.03, 5, "node_1", "node_2")).toEqual(NO_BLOCKERS);
    expect(told(0.02, 5, "node_1", "node_2")).toEqual(["disrupted: 2 nodes are disrupted, of 2 at most"]);
    expect(told(0.5, 2, "node_1", "node_2")).toHaveLength(1);
    expect(told(0.5, 3, "node_1", "node_2")).toEqual(NO_BLOCKERS);
  });

  test("counts a node that is under our hand already once", () => {
    expect(told(0.02, 5, "node_0", "node_1")).toEqual(NO_BLOCKERS);
    expect(told(0.01, 5, "node_0", "node_1")).toHaveLength(1);
  });

  test("0 allows none; above 0 it is one node at least", () => {
    expect(told(0, 5)).toEqual(["disrupted: 0 nodes are disrupted, of 0 at most"]);
    expect(told(0.5, 0)).toHaveLength(1);
    expect(told(0.0001, 5)).toEqual(NO_BLOCKERS);
    expect(told(0.0001, 5, "node_1")).toHaveLength(1);
  });
});

describe("max_disrupted_per", () => {
  const told = (per: Safety["maxDisruptedPer"], episodes: readonly Episode[], candidate: Partial<Candidate> = {}) =>
    blockersOfGuard(disruptedDomainGuard, candidate, { safety: { maxDisruptedPer: per }, episodes });

  test("counts the nodes of the candidate's region, and of its country", () => {
    // Of the region r-0 and of DE; of r-1 and DE; of r-3 and FR.
    const all = actingEpisodes("node_5", "node_1", "node_3");
    expect(told({ region: 2, country: 3 }, all)).toEqual(NO_BLOCKERS);
    expect(told({ region: 1, country: null }, all)).toEqual([
      "disrupted_domain: 1 nodes of the region r-0 are disrupted, of 1 at most",
    ]);
    expect(told({ region: null, country: 2 }, all)).toEqual([
      "disrupted_domain: 2 nodes of the country DE are disrupted, of 2 at most",
    ]);
    expect(told({ region: 1, country: 2 }, all)).toHaveLength(2);
    expect(told({ region: null, country: null }, all)).toEqual(NO_BLOCKERS);
  });

  test("counts the candidate's own node once, and 0 allows none", () => {
    expect(told({ region: 1, country: null }, actingEpisodes("node_0"))).toEqual(NO_BLOCKERS);
    expect(told({ region: 0, country: null }, [])).toHaveLength(1);
  });

  test("takes nodes without a region for one place", () => {
    expect(told({ region: 0, country: null }, [], { node: buildObservation({ region: "" }) })).toEqual([
      "disrupted_domain: 0 nodes of the region (none) are disrupted, of 0 at most",
    ]);
  });
});

describe("min_online_per", () => {
  const hot = buildObservation({ id: "node_5", status: "online" });
  /** The region r-0 with so many online nodes, node_5 among them. */
  const online = (count: number): readonly NodeFixture[] =>
    hundredNodes.map((node, index) =>
      node.region !== "r-0" ? node : { ...node, status: index / 5 >= 1 && index / 5 <= count ? "online" : "offline" },
    );
  const told = (count: number, region: number, candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) =>
    blockersOfGuard(
      minOnlineGuard,
      { node: hot, ...candidate },
      { nodes: online(count), safety: { minOnlinePer: { region, country: null } }, ...facts },
    );

  test("an online node is taken out only where enough stay online", () => {
    expect(told(3, 2)).toEqual(NO_BLOCKERS);
    expect(told(2, 2)).toEqual(["min_online: 1 nodes of the region r-0 would stay online; the minimum is 2"]);
    expect(told(1, 1)).toHaveLength(1);
    expect(told(1, 0)).toEqual(NO_BLOCKERS);
  });

  test("one that is offline takes nothing away, and is not held by it", () => {
    expect(told(0, 5, { node: buildObservation({ status: "offline" }) })).toEqual(NO_BLOCKERS);
  });

  test("a node that is disrupted does not count as online, though the list still says so", () => {
    expect(told(3, 2, {}, { episodes: actingEpisodes("node_10") })).toEqual([
      "min_online: 1 nodes of the region r-0 would stay online; the minimum is 2",
    ]);
    expect(told(4, 2, {}, { episodes: actingEpisodes("node_10") })).toEqual(NO_BLOCKERS);
    expect(told(3, 2, {}, { episodes: actingEpisodes("node_5") })).toEqual(NO_BLOCKERS);
  });

  test("holds by country as by region, and reports both", () => {
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

describe("max_actions", () => {
  const told = (amount: number, sentAtTimes: readonly number[]) =>
    blockersOfGuard(
      maxActionsGuard,
      {},
      { safety: { maxActions: { amount, perMs: HOUR_MS } }, facts: { sentAtTimes } },
    );

  test("counts what was sent, and says when there is room again", () => {
    const ago = (...minutes: number[]) => minutes.map((each) => NOON - each * MINUTE_MS);
    expect(told(3, ago(1, 59))).toEqual(NO_BLOCKERS);
    expect(told(3, ago(1, 59, 30))).toEqual(["max_actions: 3 actions within 1h, of 3 at most; one is free in 1m"]);
    expect(told(2, ago(1, 59, 30))).toEqual(["max_actions: 3 actions within 1h, of 2 at most; one is free in 30m"]);
  });

  test("says how many are assumed because the journal is new", () => {
    const facts = { sentAtTimes: [NOON], assumedActionCount: 1 };
    const safety = { maxActions: { amount: 1, perMs: HOUR_MS } };
    expect(blockersOfGuard(maxActionsGuard, {}, { safety, facts })).toEqual([
      "max_actions: 1 actions within 1h, of 1 at most; one is free in 1h; 1 of them are assumed, because the journal is new",
    ]);
  });

  test("0 allows no action, and none becomes free", () => {
    expect(told(0, [])).toEqual(["max_actions: 0 actions within 1h, of 0 at most"]);
    expect(told(0, [NOON])).toEqual(["max_actions: 1 actions within 1h, of 0 at most"]);
  });

  test("takes more actions than a call has room for arguments", () => {
    const many = Array.from({ length: 300_000 }, (_, index) => NOON - index);
    expect(told(300_000, many)).toHaveLength(1);
  });
});

test("actions under way on the node itself don't count against it, those on others do", () => {
  const inFlight = [actionOf(1, "ep-1", { node: "node_0" }), actionOf(2, "ep-2", { node: "node_1" })];
  const held = (maxInFlight: number) =>
    blockersOfGuard(inFlightGuard, {}, { safety: { maxInFlight }, facts: { inFlight } });
  expect(held(2)).toEqual(NO_BLOCKERS);
  expect(held(1)).toEqual(["in_flight: 1 of 1 actions in flight are not yet verified: act-2 on node_1"]);
});

test("the episode of the candidate itself is no reason against it", () => {
  const own = openEpisode({ acted: 1 });
  const facts = buildFacts({ episodes: [own] });
  const candidate = buildCandidate({ episode: own });
  for (const guard of [disruptedGuard, disruptedDomainGuard, inFlightGuard]) {
    expect(guard.check(candidate, facts)).toEqual([]);
  }
});
