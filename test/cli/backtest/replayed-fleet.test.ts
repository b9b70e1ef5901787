import { expect, test } from "vitest";
import { HistoryChunk } from "../../../src/cli/backtest/history-chunk.ts";
import { LAST_SEEN } from "../../../src/cli/backtest/history-sources.ts";
import { ReplayedFleet } from "../../../src/cli/backtest/replayed-fleet.ts";
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
  chunk.addStatus({ labels: { node_id, status }, values: samples(values) });
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
    history.addInfo({
      labels: { node_id: "node_1", name: "fra-1", country: "DE", region: "eu" },
      values: samples([1]),
    });
    history.addColumn(LAST_SEEN, { labels: { node_id: "node_1" }, values: minutes([-3]) });
    addCollector(history, SUCCESS, "nodes", minutes([-0.5]));
  });
  const { fleet } = replay(chunk)[0]!;
  expect(NODE_STATUSES[fleet.status[0]!]).toBe("offline");
  expect({ ids: fleet.ids, name: fleet.name, locations: fleet.locations }).toEqual({
    ids: ["node_1"],
    name: ["fra-1"],
    locations: [{ country: "DE", region: "eu" }],
  });
  expect(fleet.lastSeenMs[0]).toBe(START_MS - 3 * STEP_MS);
  expect(fleet.listedAt[0]).toBe(-STEP_MS / 2);
  expect(fleet.uptimeHours[0]).toBeNaN();
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

test("a walk that was not complete is none", () => {
  const chunk = chunkOf(2, (history) => {
    addStatus(history, "node_1", "online", [1, 1]);
    addCollector(history, SUCCESS, "nodes", minutes([0, 1]));
    addCollector(history, "proxywarden_collect_complete", "nodes", samples([1, 0]));
  });
  expect(replay(chunk).map((snapshot) => snapshot!.fleet.lastWalk!.complete)).toEqual([true, false]);
});

test("while the daemon is scraped and shows no nodes, it keeps those it had", () => {
  const chunk = chunkOf(3, (history) => {
    addStatus(history, "node_1", "online", [1, NONE, NONE]);
    addCollector(history, SUCCESS, "nodes", minutes([0, 0, 0]));
    history.addScrapeTimes({ labels: {}, values: minutes([0, 1, 1]) });
  });
  const [before, blind, notScraped] = replay(chunk);
  expect(before!.fleet.listedAt[0]).toBe(0);
  expect({ at: blind!.at, count: blind!.fleet.count, listedAt: blind!.fleet.listedAt[0] }).toEqual({
    at: STEP_MS,
    count: 1,
    listedAt: 0,
  });
  expect(notScraped).toBeNull();
});

test("of sessions only the statuses are known that the metrics count as policies do", () => {
  const chunk = chunkOf(1, (history) => {
    addStatus(history, "node_1", "online", [1]);
    for (const [status, count] of Object.entries({ active: 7, connecting: 2, error: 5 }))
      history.addSessions({ labels: { node_id: "node_1", status }, values: samples([count]) });
  });
  const { nodes, settledAt, complete } = replay(chunk)[0]!.sessions!;
  const counts = Object.fromEntries(SESSION_STATUSES.map((status, index) => [status, nodes.recent[index]![0]]));
  expect(counts).toEqual({ active: 7, connecting: 2, closed: NONE, error: NONE, timeout: NONE, unknown: 0 });
  expect({ settledAt, complete }).toEqual({ settledAt: 0, complete: true });
});
