import { expect, test } from "vitest";
import { HistoryChunk } from "../../../src/cli/backtest/history-chunk.ts";
import { LAST_SEEN, NODE_SESSIONS } from "../../../src/cli/backtest/history-sources.ts";
import { ReplayedFleet } from "../../../src/cli/backtest/replayed-fleet.ts";
import { NODE_INFO, NODE_STATUS } from "../../../src/metrics/families/node-families.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import { SESSION_STATUSES } from "../../../src/model/session.ts";

const START_MS = Date.UTC(2026, 2, 1);
const STEP_MS = 60_000;
const NONE = Number.NaN;

/** Creates a chunk from the samples of each series, by point. */
function chunkOf(points: number, add: (chunk: HistoryChunk) => void): HistoryChunk {
  const chunk = new HistoryChunk({ startMs: START_MS, stepMs: STEP_MS, points });
  add(chunk);
  return chunk;
}

const samples = (values: readonly number[]) => Float64Array.from(values);
/** Times of a scrape or a walk, in minutes since the start, as the metrics show them. */
const minutes = (values: readonly number[]) => samples(values.map((value) => START_MS / 1_000 + value * 60));

const addStatus = (chunk: HistoryChunk, node_id: string, status: string, values: readonly number[]) =>
  chunk.addNode(NODE_STATUS.name, { labels: { node_id, status }, values: samples(values) });
const addCollector = (chunk: HistoryChunk, family: string, collector: string, values: Float64Array) =>
  chunk.addCollector({ labels: { __name__: family, collector }, values });
const SUCCESS = "proxywarden_collect_last_success_timestamp_seconds";

/** Returns the last snapshot of each point; null: nothing new was scraped. */
function replay(chunk: HistoryChunk) {
  const fleet = new ReplayedFleet(START_MS);
  return Array.from({ length: chunk.grid.points }, (_, point) => fleet.advance(chunk, point).at(-1)?.snapshot ?? null);
}

test("a record has the values of the metrics, and is as old as the walk", () => {
  const chunk = chunkOf(1, (history) => {
    addStatus(history, "node_1", "offline", [1]);
    history.addNode(NODE_INFO.name, {
      labels: { node_id: "node_1", name: "fra-1", country: "DE", region: "eu" },
      values: samples([1]),
    });
    history.addNode(LAST_SEEN.name, { labels: { node_id: "node_1" }, values: minutes([-3]) });
    addCollector(history, SUCCESS, "nodes", minutes([-0.5]));
  });
  const { fleet } = replay(chunk)[0]!;
  expect(NODE_STATUSES[fleet.status[0]!]).toBe("offline");
  expect({ ids: fleet.ids, name: fleet.name, locations: fleet.locations }).toEqual({
    ids: ["node_1"],
    name: ["fra-1"],
    locations: [{ country: "DE", region: "eu" }],
  });
  expect(fleet.lastSeenMs.at(0)).toBe(START_MS - 3 * STEP_MS);
  expect(fleet.listedAt.at(0)).toBe(-STEP_MS / 2);
  expect(fleet.uptimeHours.at(0)).toBeNaN();
});

test("without the metrics of the daemon every point is a complete walk", () => {
  const walks = replay(chunkOf(2, (chunk) => addStatus(chunk, "node_1", "online", [1, 1])));
  expect(walks.map((snapshot) => snapshot!.fleet.lastWalk)).toMatchObject([
    { complete: true, completeWalks: 1, at: 0 },
    { complete: true, completeWalks: 2, at: STEP_MS },
  ]);
});

test("a node that the history no longer shows is gone", () => {
  const chunk = chunkOf(2, (history) => {
    addStatus(history, "node_1", "online", [1, 1]);
    addStatus(history, "node_2", "online", [1, NONE]);
  });
  expect(replay(chunk).map((snapshot) => snapshot!.fleet.count)).toEqual([2, 1]);
});

test("an incomplete walk is ignored", () => {
  const chunk = chunkOf(2, (history) => {
    addStatus(history, "node_1", "online", [1, 1]);
    addCollector(history, SUCCESS, "nodes", minutes([0, 1]));
    addCollector(history, "proxywarden_collect_complete", "nodes", samples([1, 0]));
  });
  expect(replay(chunk).map((snapshot) => snapshot!.fleet.lastWalk!.complete)).toEqual([true, false]);
});

test("a node that is missing after a walk that was cut keeps what it had, and is gone after a complete one", () => {
  const chunk = chunkOf(3, (history) => {
    addStatus(history, "node_1", "online", [1, 1, 1]);
    addStatus(history, "node_2", "offline", [1, NONE, NONE]);
    addCollector(history, SUCCESS, "nodes", minutes([0, 1, 2]));
    addCollector(history, "proxywarden_collect_complete", "nodes", samples([1, 0, 1]));
  });
  const [, cut, complete] = replay(chunk).map((snapshot) => snapshot!.fleet);
  expect({ ids: cut!.ids, listedAt: [...cut!.listedAt] }).toEqual({
    ids: ["node_1", "node_2"],
    listedAt: [STEP_MS, 0],
  });
  expect(NODE_STATUSES[cut!.status[1]!]).toBe("offline");
  expect(complete!.count).toBe(1);
});

test.each([
  ["the time that the daemon stated", 1_200, 600, 1_200],
  ["at least three times the resolution", 30, 20, 180],
  ["without that time three intervals", NONE, 600, 1_800],
  ["without any of its metrics three times the resolution", NONE, NONE, 180],
])("data counts as fresh for %s", (_, freshSeconds, intervalSeconds, expected) => {
  const chunk = chunkOf(1, (history) => {
    addStatus(history, "node_1", "online", [1]);
    addCollector(history, "proxywarden_plan_fresh_seconds", "details", samples([freshSeconds]));
    addCollector(history, "proxywarden_plan_interval_seconds", "details", samples([intervalSeconds]));
  });
  const [point] = new ReplayedFleet(START_MS).advance(chunk, 0);
  expect(point!.plan.details!.freshMs).toBe(expected * 1_000);
});

test("the resolution is the median time between two scrapes, in seconds, if it is longer than the step", () => {
  const scrapes = minutes([0, 2.001, 4, 6.002, 6.2, 6.4]);
  const chunk = chunkOf(scrapes.length, (history) => {
    addStatus(history, "node_1", "online", Array(scrapes.length).fill(1));
    history.addScrapeTimes({ labels: {}, values: scrapes });
  });
  const fleet = new ReplayedFleet(START_MS);
  for (let point = 0; point < scrapes.length; point++) fleet.advance(chunk, point);
  expect(fleet.resolutionMs(chunk)).toBe(2 * STEP_MS);
});

test("while the daemon is scraped and shows no nodes, it keeps those it had", () => {
  const chunk = chunkOf(3, (history) => {
    addStatus(history, "node_1", "online", [1, NONE, NONE]);
    addCollector(history, SUCCESS, "nodes", minutes([0, 0, 0]));
    history.addScrapeTimes({ labels: {}, values: minutes([0, 1, 1]) });
  });
  const [before, blind, notScraped] = replay(chunk);
  expect(before!.fleet.listedAt.at(0)).toBe(0);
  expect({ at: blind!.at, count: blind!.fleet.count, listedAt: blind!.fleet.listedAt.at(0) }).toEqual({
    at: STEP_MS,
    count: 1,
    listedAt: 0,
  });
  expect(notScraped).toBeNull();
});

test("a node without a sample of its sessions has none", () => {
  const chunk = chunkOf(2, (history) => {
    addStatus(history, "node_1", "online", [1, 1]);
    history.addNode(NODE_SESSIONS, { labels: { node_id: "node_1", status: "active" }, values: samples([7, NONE]) });
  });
  const active = SESSION_STATUSES.indexOf("active");
  expect(replay(chunk).map((snapshot) => snapshot!.sessions!.nodes.recent[active]![0])).toEqual([7, 0]);
});

test("only the statuses of sessions are known that the metrics count like policies", () => {
  const chunk = chunkOf(1, (history) => {
    addStatus(history, "node_1", "online", [1]);
    for (const [status, count] of Object.entries({ active: 7, connecting: 2, error: 5 }))
      history.addNode(NODE_SESSIONS, { labels: { node_id: "node_1", status }, values: samples([count]) });
  });
  const { nodes, settledAt, complete } = replay(chunk)[0]!.sessions!;
  const counts = Object.fromEntries(SESSION_STATUSES.map((status, index) => [status, nodes.recent[index]![0]]));
  expect(counts).toEqual({ active: 7, connecting: 2, closed: NONE, error: NONE, timeout: NONE, unknown: 0 });
  expect({ settledAt, complete }).toEqual({ settledAt: 0, complete: true });
});
