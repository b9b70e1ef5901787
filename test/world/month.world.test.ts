import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/base/duration.ts";
import { defaultScenario, demoScenario } from "../../src/simulator/default-scenarios.ts";
import { holdsWithoutAlert, type MonthOptions, monthTable, runMonth, unexplained } from "./runs/simulated-month.ts";

const seed = Number(process.env.WORLD_SEED ?? 1);
const DAYS = Number(process.env.WORLD_DAYS ?? 30);
/**
 * A simulated day takes 7 s of one core for 20 nodes, 17 s for 200, and 150 s for 2,000: large fleets run for fewer
 * days unless WORLD_DAYS is set.
 */
const daysOfLargeFleet = process.env.WORLD_DAYS === undefined ? 4 : DAYS;

const demoRates = demoScenario.rates;
/** Rarer faults that operators repair within hours: at most four an hour, which the default limits can handle. */
const realisticRates = (everyDays: number) => ({
  ...demoRates,
  faultEveryMs: everyDays * DAY_MS,
  repairMs: defaultScenario.rates.repairMs,
});

const months: readonly MonthOptions[] = [
  { name: "20 nodes, a fault on each every 12 hours", seed, nodes: 20, days: DAYS, rates: realisticRates(0.5) },
  { name: "200 nodes, a fault on each every 2 days", seed, nodes: 200, days: DAYS, rates: realisticRates(2) },
  {
    name: "2,000 nodes, a fault on each every 5 days",
    seed,
    nodes: 2_000,
    days: daysOfLargeFleet,
    rates: realisticRates(5),
  },
  { name: "20 nodes, a fault on each every 2 hours", seed, nodes: 20, days: DAYS, rates: demoRates },
  { name: "200 nodes, a fault on each every 2 hours", seed, nodes: 200, days: DAYS, rates: demoRates },
  { name: "2,000 nodes, a fault on each every 2 hours", seed, nodes: 2_000, days: daysOfLargeFleet, rates: demoRates },
];

test.each(months)(
  "acts on no healthy node and holds none for 6 h without an alert: $name",
  async (options) => {
    const month = await runMonth(options);
    console.log(monthTable(month));
    expect(month.wrongActions, `replay: WORLD_SEED=${seed} npm run world -- month`).toEqual([]);
    expect(holdsWithoutAlert(month)).toEqual([]);
    expect(unexplained(month)).toEqual([]);
  },
  6 * HOUR_MS,
);
