import { expect, test } from "vitest";
import { allCells, type Cell, cellOf, pageSizeOf, titleOf } from "../../bench/freshness/cell.ts";
import { type CellRun, runCell } from "../../bench/freshness/cell-run.ts";
import { DETECTION_KINDS, quantile } from "../../bench/freshness/detection.ts";
import { freshnessDocument } from "../../bench/freshness/document.ts";
import { createListing } from "../../bench/freshness/listing.ts";
import { createScript, START_MS } from "../../bench/freshness/script.ts";
import { checkTargets, medianOf } from "../../bench/freshness/targets.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { createService, handleRequest, type SimulatedService } from "../../src/simulator/http/service.ts";

const small: Cell = { ...cellOf(500, "enterprise100", 1), faults: 16 };

let smallRun: Promise<CellRun> | null = null;
/** Runs the small cell once for all tests. */
const run = (): Promise<CellRun> => {
  smallRun ??= runCell(small);
  return smallRun;
};

test("reaches every target on a small fleet", async () => {
  const targetResults = checkTargets(await run());
  expect(targetResults.map(({ target }) => target)).toEqual([
    "calls answered with 429",
    "offline nodes: ratio to the oracle",
    "used share of the polling budget",
  ]);
  expect(targetResults.filter(({ isReached }) => !isReached)).toEqual([]);
});

test("finds slow rises earlier than round robin, and jumps not much later", async () => {
  const { proxywarden, even } = (await run()).results;
  expect(proxywarden.callsPerMinute).toBeLessThanOrEqual(even.callsPerMinute);
  expect(medianOf(even, "creep") / medianOf(proxywarden, "creep")).toBeGreaterThan(3);
  expect(medianOf(proxywarden, "jump") / medianOf(even, "jump")).toBeLessThan(1.25);
});

test("no contender is faster than the oracle at details, and only the naive one gets 429s", async () => {
  const { results } = await run();
  const { proxywarden, even, naive, oracle } = results;
  for (const kind of ["creep", "signalled", "jump"] as const) {
    for (const other of [proxywarden, even, naive]) {
      expect(medianOf(oracle, kind)).toBeLessThan(medianOf(other, kind));
    }
  }
  expect([proxywarden.rejected, even.rejected, oracle.rejected]).toEqual([0, 0, 0]);
  expect(naive.rejected).toBeGreaterThan(100);
  for (const { latencies } of Object.values(results)) {
    for (const kind of DETECTION_KINDS) expect(Math.min(...latencies[kind])).toBeGreaterThanOrEqual(0);
  }
});

const churning: Cell = { ...cellOf(500, "enterprise100", 1, "churn"), faults: 8 };
const failing: Cell = { ...cellOf(500, "enterprise100", 1, "bad_details"), faults: 8 };

/** Returns the IDs on a page of the simulated service's list. */
function idsOn(service: SimulatedService, page: number, limit: number, at: number): string[] {
  const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
  const path = `/v1/nodes?page=${page + 1}&limit=${limit}`;
  return JSON.parse(String(handleRequest(service, { method: "GET", path, headers }, at).body)).data.map(
    ({ id }: { id: string }) => id,
  );
}

test("the list model agrees with the service while nodes join and leave", () => {
  const script = createScript(churning);
  const service = createService(script.scenario, START_MS);
  const listing = createListing(churning, script);
  const limit = pageSizeOf(churning);
  const { endMs } = script.timetable;
  expect(script.membershipChanges.length).toBeGreaterThan(50);
  let node = -1;
  for (let at = START_MS; at < START_MS + endMs; at += 97_000) {
    const pages = Array.from({ length: listing.pages(at) }, (_, page) => idsOn(service, page, limit, at));
    expect(pages.at(-1)!.length).toBeGreaterThan(0);
    expect(idsOn(service, pages.length, limit, at)).toEqual([]);
    for (const index of script.eligible.filter((index) => index % 40 === 0)) {
      expect(pages[listing.pageOf(index, at)]).toContain(script.idOf(index));
    }
    node = listing.next(node, at);
    const present = service.network.fleet.nodes.map(({ index }) => index);
    expect(present).toContain(node);
  }
});

test.each([churning, failing])("finds faults under $conditions, which are on eligible nodes only", async (cell) => {
  const script = createScript(cell);
  const { results } = await runCell(cell);
  expect(script.eligible.length).toBeLessThan(500);
  expect(script.faults.every(({ index }) => script.eligible.includes(index))).toBe(true);
  for (const contender of ["even", "naive", "oracle", "proxywarden"] as const) {
    for (const kind of DETECTION_KINDS) expect(medianOf(results[contender], kind)).toBeLessThan(20 * 60_000);
  }
  expect([results.proxywarden.rejected, results.even.rejected]).toEqual([0, 0]);
});

test("a tenth of the nodes has unreadable details", () => {
  const { isReadable } = createScript({ ...failing, nodes: 5_000 });
  const bad = Array.from({ length: 5_000 }, (_, index) => index).filter((index) => !isReadable(index));
  expect(Math.abs(bad.length / 5_000 - 0.1)).toBeLessThan(0.02);
});

test("each other condition has one cell with the targets of the plain one", async () => {
  const others = allCells(1).filter(({ conditions }) => conditions !== "plain");
  expect(others.map(({ nodes, conditions }) => [nodes, conditions])).toEqual([
    [5_000, "churn"],
    [5_000, "bad_details"],
  ]);
  expect(allCells(1)).toHaveLength(14);
  expect(new Set(allCells(1).map((cell) => `${cell.nodes} ${titleOf(cell)}`)).size).toBe(14);
  const result = await run();
  const targets = (cell: Cell) => checkTargets({ ...result, cell }).map(({ target }) => target);
  const plain = targets(cellOf(5_000, "enterprise100", 1));
  expect(targets(others[1]!)).toEqual(plain);
  expect(targets(others[0]!)).toEqual([
    ...plain,
    "missing or wrongly kept nodes: share of the fleet",
    "share of snapshots with node metrics",
  ]);
});

test("quantiles beyond the share of found faults are infinite", () => {
  const latencies = [3, Number.POSITIVE_INFINITY, 1, 2];
  expect([0.25, 0.5, 0.75, 0.95].map((share) => quantile(latencies, share))).toEqual([1, 2, 3, Infinity]);
});

test("the same seed gives the same document, and another seed a different script", async () => {
  const text = freshnessDocument([await run()], 1);
  expect(freshnessDocument([await runCell(small)], 1)).toBe(text);
  expect(createScript({ ...small, seed: 2 }).faults).not.toEqual(createScript(small).faults);
  expect(text).toContain("| 500 | Enterprise, 100 node calls a minute | calls answered with 429 | ≤ 0 | 0 | PASS |");
});

test("reports missed targets", async () => {
  const { cell, results, cpuSeconds } = await run();
  const changed = { ...results, proxywarden: { ...results.proxywarden, rejected: 1, callsPerMinute: 1 } };
  const missed = checkTargets({ cell, results: changed, cpuSeconds }).filter(({ isReached }) => !isReached);
  expect(missed.map(({ target }) => target)).toEqual(["calls answered with 429", "used share of the polling budget"]);
});
