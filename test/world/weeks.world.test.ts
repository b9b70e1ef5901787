import { expect, test } from "vitest";
import { HOUR_MS } from "../../src/base/duration.ts";
import { defaultSafety } from "../harness/policies.ts";
import { configWithSafety, fastPolicies, permissiveSafety } from "./runs/fleet-policies.ts";
import { simulateWeek, type WeekOptions, weekTable } from "./runs/simulated-week.ts";

const SEED = Number(process.env.WORLD_SEED ?? 1);
/** A day of 2,000 nodes takes some minutes. */
const DAYS = Number(process.env.WORLD_DAYS ?? 7);
const fleet = { seed: SEED, nodes: 2_000 };
const permissiveConfig = configWithSafety(permissiveSafety, fastPolicies);

const weeks: readonly WeekOptions[] = [
  { ...fleet, name: "limits for this fleet, enterprise", days: DAYS, plan: "enterprise", config: permissiveConfig },
  { ...fleet, name: "limits for this fleet, business", days: DAYS, plan: "business", config: permissiveConfig },
  {
    ...fleet,
    name: "default limits, enterprise",
    days: Math.min(DAYS, 1),
    plan: "enterprise",
    config: configWithSafety(defaultSafety, fastPolicies),
  },
];

test.each(weeks)(
  "acts on no healthy node, sends no action twice and receives no 429: $name",
  async (options) => {
    const week = await simulateWeek(options);
    console.log(weekTable(week));
    expect(week.violations, `replay: WORLD_SEED=${SEED} npm run world -- week`).toEqual([]);
    expect(week.limited).toBe(0);
  },
  6 * HOUR_MS,
);
