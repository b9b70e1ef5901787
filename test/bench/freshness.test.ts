import { expect, test } from "vitest";
import { allCells, type Cell, cellOf, pageSizeOf, titleOf } from "../../bench/freshness/cell.ts";
import { type Contest, runContest } from "../../bench/freshness/contest.ts";
import { freshnessDocument } from "../../bench/freshness/document.ts";
import { KINDS, quantile } from "../../bench/freshness/finding.ts";
import { createListing } from "../../bench/freshness/listing.ts";
import { START_MS, writeScript } from "../../bench/freshness/script.ts";
import { judge, medianOf } from "../../bench/freshness/targets.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { createService, handleRequest, type SimulatedService } from "../../src/simulator/http/service.ts";

const small: Cell = { ...cellOf(500, "enterprise100", 1), faults: 16 };

let played: Promise<Contest> | null = null;
/** One contest for all tests: it takes a second. */
const contest = (): Promise<Contest> => {
  played ??= runContest(small);
  return played;
};

test("on a small fleet every target of the bench is reached", async () => {
  const judgements = judge(await contest());
  expect(judgements.map(({ target }) => target)).toEqual([
    "calls answered 429",
    "offline nodes: times the oracle",
    "share spent of what polling may spend",
  ]);
  expect(judgements.filter(({ isReached }) => !isReached)).toEqual([]);
});

test("usages that creep are found sooner than by taking nodes in turn, and jumps hardly later", async () => {
  const { proxywarden, even } = (await contest()).showings;
  expect(proxywarden.callsAMinute).toBeLessThanOrEqual(even.callsAMinute);
  expect(medianOf(even, "creep") / medianOf(proxywarden, "creep")).toBeGreaterThan(3);
  expect(medianOf(proxywarden, "jump") / medianOf(even, "jump")).toBeLessThan(1.25);
});

test("nobody beats the oracle at details, nobody polls in vain but the naive, and time is never negative", async () => {
  const { showings } = await contest();
  const { proxywarden, even, naive, oracle } = showings;
  for (const kind of ["creep", "signalled", "jump"] as const) {
    for (const other of [proxywarden, even, naive]) {
      expect(medianOf(oracle, kind)).toBeLessThan(medianOf(other, kind));
    }
  }
  expect([proxywarden.refused, even.refused, oracle.refused]).toEqual([0, 0, 0]);
  expect(naive.refused).toBeGreaterThan(100);
  for (const { latencies } of Object.values(showings)) {
    for (const kind of KINDS) expect(Math.min(...latencies[kind])).toBeGreaterThanOrEqual(0);
  }
});

const churning: Cell = { ...cellOf(500, "enterprise100", 1, "churn"), faults: 16 };
const failing: Cell = { ...cellOf(500, "enterprise100", 1, "bad_details"), faults: 16 };

/** One page of the simulated service's list. */
function idsOn(service: SimulatedService, page: number, limit: number, at: number): string[] {
  const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
  const path = `/v1/nodes?page=${page + 1}&limit=${limit}`;
  return JSON.parse(String(handleRequest(service, { method: "GET", path, headers }, at).body)).data.map(
    ({ id }: { id: string }) => id,
  );
}

test("pollers meet the list that the service would show them, while nodes join and leave", () => {
  const script = writeScript(churning);
  const service = createService(script.scenario, START_MS);
  const listing = createListing(churning, script);
  const limit = pageSizeOf(churning);
  const { endMs } = script.timetable;
  expect(script.moves.length).toBeGreaterThan(100);
  let node = -1;
  for (let at = START_MS; at < START_MS + endMs; at += 97_000) {
    const pages = Array.from({ length: listing.pages(at) }, (_, page) => idsOn(service, page, limit, at));
    expect(pages.at(-1)!.length).toBeGreaterThan(0);
    expect(idsOn(service, pages.length, limit, at)).toEqual([]);
    for (const index of script.watched.filter((each) => each % 40 === 0)) {
      expect(pages[listing.pageOf(index, at)]).toContain(script.idOf(index));
    }
    node = listing.next(node, at);
    const there = service.world.fleet.nodes.map(({ index }) => index);
    expect(there).toContain(node);
  }
});

test.each([churning, failing])(
  "faults of $conditions are on nodes that stay and can be read, and are found",
  async (cell) => {
    const script = writeScript(cell);
    const { showings } = await runContest(cell);
    expect(script.watched.length).toBeLessThan(500);
    expect(script.faults.every(({ index }) => script.watched.includes(index))).toBe(true);
    for (const contender of ["even", "naive", "oracle", "proxywarden"] as const) {
      for (const kind of KINDS) expect(medianOf(showings[contender], kind)).toBeLessThan(20 * 60_000);
    }
    expect([showings.proxywarden.refused, showings.even.refused]).toEqual([0, 0]);
  },
);

test("a tenth of the nodes has details that can't be read", () => {
  const { isReadable } = writeScript({ ...failing, nodes: 5_000 });
  const bad = Array.from({ length: 5_000 }, (_, index) => index).filter((index) => !isReadable(index));
  expect(Math.abs(bad.length / 5_000 - 0.1)).toBeLessThan(0.02);
});

test("each of the other conditions has one cell, and the targets of its plain one", async () => {
  const others = allCells(1).filter(({ conditions }) => conditions !== "plain");
  expect(others.map(({ nodes, conditions }) => [nodes, conditions])).toEqual([
    [5_000, "churn"],
    [5_000, "bad_details"],
  ]);
  expect(allCells(1)).toHaveLength(14);
  expect(new Set(allCells(1).map((cell) => `${cell.nodes} ${titleOf(cell)}`)).size).toBe(14);
  const played = await contest();
  const targets = (cell: Cell) => judge({ ...played, cell }).map(({ target }) => target);
  const plain = targets(cellOf(5_000, "enterprise100", 1));
  expect(targets(others[1]!)).toEqual(plain);
  expect(targets(others[0]!)).toEqual([
    ...plain,
    "nodes missing or wrongly kept: share of the fleet",
    "share of the time in which node metrics are shown",
  ]);
});

test("a share of the faults that was not found makes the quantiles above it infinite, and no others", () => {
  const latencies = [3, Number.POSITIVE_INFINITY, 1, 2];
  expect([0.25, 0.5, 0.75, 0.95].map((share) => quantile(latencies, share))).toEqual([1, 2, 3, Infinity]);
});

test("the same seed gives the same document, and another seed another script", async () => {
  const text = freshnessDocument([await contest()], 1);
  expect(freshnessDocument([await runContest(small)], 1)).toBe(text);
  expect(writeScript({ ...small, seed: 2 }).faults).not.toEqual(writeScript(small).faults);
  expect(text).toContain("| 500 | Enterprise, 100 node calls a minute | calls answered 429 | ≤ 0 | 0 | PASS |");
});

test("a target that is missed is said to be", async () => {
  const { cell, showings, cpuSeconds } = await contest();
  const spoiled = { ...showings, proxywarden: { ...showings.proxywarden, refused: 1, callsAMinute: 1 } };
  const missed = judge({ cell, showings: spoiled, cpuSeconds }).filter(({ isReached }) => !isReached);
  expect(missed.map(({ target }) => target)).toEqual(["calls answered 429", "share spent of what polling may spend"]);
});
