import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/base/duration.ts";
import { defaultScenario, demoScenario } from "../../src/simulator/defaults.ts";
import { holdsWithoutAlert, type MonthOptions, monthTable, runMonth, unexplained } from "./month.ts";

const seed = Number(process.env.WORLD_SEED ?? 1);
const DAYS = Number(process.env.WORLD_DAYS ?? 30);
/** A day of 2,000 nodes takes as long as a month of 20. */
const DAYS_OF_LARGE_MAX = 2;

/** The demo's faults as often as in the demo, and at a rate that fleets have: there an operator needs hours to repair one. */
const demo = demoScenario.rates;
const real = { ...demo, faultEveryMs: 10 * DAY_MS, repairMs: defaultScenario.rates.repairMs };

const months: readonly MonthOptions[] = [20, 200, 2_000].flatMap((nodes) => {
  const days = nodes > 1_000 ? Math.min(DAYS, DAYS_OF_LARGE_MAX) : DAYS;
  return [
    { name: `${nodes} nodes, a fault of each every 10 days`, seed, nodes, days, rates: real },
    { name: `${nodes} nodes, a fault of each every 2 hours`, seed, nodes, days, rates: demo },
  ];
});

test.each(months)(
  "$name: no healthy node is acted on, and no hold lasts 6 h without an alert",
  async (options) => {
    const month = await runMonth(options);
    console.log(monthTable([month]));
    expect(month.wrong, `WORLD_SEED=${seed} npm run world -- month repeats it`).toEqual([]);
    expect(holdsWithoutAlert(month)).toEqual([]);
    expect(unexplained(month)).toEqual([]);
  },
  6 * HOUR_MS,
);
