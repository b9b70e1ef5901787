import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/base/duration.ts";
import { defaultScenario, demoScenario } from "../../src/simulator/default-scenarios.ts";
import { holdsWithoutAlert, type MonthOptions, monthTable, runMonth, unexplained } from "./runs/simulated-month.ts";

const seed = Number(process.env.WORLD_SEED ?? 1);
const DAYS = Number(process.env.WORLD_DAYS ?? 30);
/** A day of 2,000 nodes takes two and a half minutes of one core, one of 200 half a minute, one of 20 eleven seconds. */
const daysOfLarge = Math.min(DAYS, 4);

/** The demo's faults as often as in the demo. */
const demo = demoScenario.rates;
/** The same faults, of which operators repair one in hours, as often as the default limits can treat: at most four an hour. */
const real = (everyDays: number) => ({
  ...demo,
  faultEveryMs: everyDays * DAY_MS,
  repairMs: defaultScenario.rates.repairMs,
});

const months: readonly MonthOptions[] = [
  { name: "20 nodes, a fault of each every 12 hours", seed, nodes: 20, days: DAYS, rates: real(0.5) },
  { name: "200 nodes, a fault of each every 2 days", seed, nodes: 200, days: DAYS, rates: real(2) },
  { name: "2,000 nodes, a fault of each every 5 days", seed, nodes: 2_000, days: daysOfLarge, rates: real(5) },
  { name: "20 nodes, a fault of each every 2 hours", seed, nodes: 20, days: DAYS, rates: demo },
  { name: "200 nodes, a fault of each every 2 hours", seed, nodes: 200, days: DAYS, rates: demo },
  { name: "2,000 nodes, a fault of each every 2 hours", seed, nodes: 2_000, days: daysOfLarge, rates: demo },
];

test.each(months)(
  "$name: no healthy node is acted on, and no hold lasts 6 h without an alert",
  async (options) => {
    const month = await runMonth(options);
    console.log(monthTable([month]));
    expect(month.wrongActions, `WORLD_SEED=${seed} npm run world -- month repeats it`).toEqual([]);
    expect(holdsWithoutAlert(month)).toEqual([]);
    expect(unexplained(month)).toEqual([]);
  },
  6 * HOUR_MS,
);
