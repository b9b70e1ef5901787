import { expect, test } from "vitest";
import { HOUR_MS } from "../../src/base/duration.ts";
import { usualSafety } from "../harness/policies.ts";
import { quickPolicies, roughSafety, rulesUnder } from "./runs/fleet-policies.ts";
import { liveThroughWeek, tableOf, type WeekOptions } from "./runs/simulated-week.ts";

const SEED = Number(process.env.WORLD_SEED ?? 1);
/** A day of 2,000 nodes takes some minutes. */
const DAYS = Number(process.env.WORLD_DAYS ?? 7);
const fleet = { seed: SEED, nodes: 2_000 };
const rough = rulesUnder(roughSafety, quickPolicies);

const weeks: readonly WeekOptions[] = [
  { ...fleet, name: "limits for this fleet, enterprise", days: DAYS, plan: "enterprise", rules: rough },
  { ...fleet, name: "limits for this fleet, business", days: DAYS, plan: "business", rules: rough },
  {
    ...fleet,
    name: "default limits, enterprise",
    days: Math.min(DAYS, 1),
    plan: "enterprise",
    rules: rulesUnder(usualSafety, quickPolicies),
  },
];

test.each(weeks)(
  "$name: nobody is touched who is well, nothing is done twice, and no call is refused",
  async (options) => {
    const week = await liveThroughWeek(options);
    console.log(tableOf([week]));
    expect(week.breaches, `WORLD_SEED=${SEED} npm run world -- week replays it`).toEqual([]);
    expect(week.limited).toBe(0);
  },
  6 * HOUR_MS,
);
