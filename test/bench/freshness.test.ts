import { expect, test } from "vitest";
import { type Cell, cellOf } from "../../bench/freshness/cell.ts";
import { type Contest, runContest } from "../../bench/freshness/contest.ts";
import { freshnessDocument } from "../../bench/freshness/document.ts";
import { KINDS, quantile } from "../../bench/freshness/finding.ts";
import { writeScript } from "../../bench/freshness/script.ts";
import { judge, medianOf } from "../../bench/freshness/targets.ts";

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
