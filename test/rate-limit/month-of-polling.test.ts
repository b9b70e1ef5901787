import { describe, expect, test } from "vitest";
import { COLLECTORS, type Collector } from "../../src/model/snapshot.ts";
import type { LastRun } from "../../src/rate-limit/monthly-budget.ts";
import { type Plan, planPolling } from "../../src/scheduling/planner.ts";
import { callsPerRun, type PlanInput } from "../../src/scheduling/polling-capacity.ts";
import { createPlanLimits } from "../harness/virtual-daemon.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** A short month, of as many calls a day as that of the Starter plan. */
const MONTH = 10 * DAY;
const STEP = MINUTE;
const starter = createPlanLimits("starter");
const limits = { ...starter, plan: { ...starter.plan, callsPerMonth: 33_334 } };
/** What it leaves to polling. */
const CAP = 33_000;

interface Fleet {
  readonly nodes: number;
  readonly nodePages: number;
  readonly sessionPages: number;
}

interface MonthOfPolling {
  /** The plan of each hour. */
  readonly plans: readonly Plan[];
  readonly used: number;
  /** Runs that began and that the month could not pay to their end. */
  readonly broken: number;
  /** How far apart a collector's runs were at most. */
  readonly longest: Readonly<Record<Collector, number>>;
}

/** A daemon that follows its plan for a month, walks at 80 calls a minute, and begins with `used` calls on `fromMs`. */
function live(fleet: Fleet, fromMs = 0, used = 0): MonthOfPolling {
  const plans: Plan[] = [];
  const runs: Partial<Record<Collector, { beganAt: number; calls: number; callsMade: number }>> = {};
  const longest = Object.fromEntries(COLLECTORS.map((collector) => [collector, 0])) as Record<Collector, number>;
  let broken = 0;
  let details = 0;
  for (let now = fromMs; now < MONTH; now += STEP) {
    let planned = planPolling(inputAt(fleet, now, used, runs));
    if ((now - fromMs) % HOUR === 0) plans.push(planned);
    for (const collector of ["nodes", "sessions", "stats", "hourly"] as const) {
      const run = runs[collector];
      const due = run === undefined ? now : run.beganAt + planned[collector]!.intervalMs;
      if (due <= now) {
        const calls = callsPerRun(collector, fleet);
        if (run !== undefined) longest[collector] = Math.max(longest[collector], now - run.beganAt);
        runs[collector] = { beganAt: now, calls, callsMade: 0 };
        planned = planPolling(inputAt(fleet, now, used, runs));
      }
      const current = runs[collector];
      if (current === undefined) continue;
      const callsMade = Math.min(80, current.calls - current.callsMade, CAP - used);
      if (current.callsMade < current.calls && callsMade === 0) broken++;
      current.callsMade += callsMade;
      used += callsMade;
    }
    details += STEP / (planned.details!.intervalMs / fleet.nodes);
    const read = Math.min(Math.floor(details), CAP - used);
    details -= read;
    used += read;
  }
  return { plans, used, broken, longest };
}

function inputAt(fleet: Fleet, now: number, used: number, runs: Record<string, unknown>): PlanInput {
  const every = (intervalMs: number) => ({ intervalMs, isCron: false });
  const lastRuns = Object.fromEntries(
    Object.entries(runs as Record<string, { beganAt: number } & Omit<LastRun, "sinceMs">>).map(([collector, run]) => [
      collector,
      { ...run, sinceMs: now - run.beganAt },
    ]),
  );
  return {
    requestedIntervals: {
      nodes: every(MINUTE),
      details: every(15 * MINUTE),
      sessions: every(MINUTE),
      stats: every(MINUTE),
      hourly: { intervalMs: HOUR, isCron: true },
    },
    ...fleet,
    limits,
    month: { callsUsed: used, leftMs: MONTH - now },
    runs: lastRuns,
  };
}

const fleets: readonly Fleet[] = [
  { nodes: 200, nodePages: 1, sessionPages: 2 },
  { nodes: 5_000, nodePages: 5, sessionPages: 50 },
  { nodes: 5_000, nodePages: 50, sessionPages: 500 },
  { nodes: 100_000, nodePages: 100, sessionPages: 1_000 },
];

/** The greatest ratio between an interval and the one `hours` before it, whichever is longer. */
function greatestJump(plans: readonly Plan[], collector: Collector, hours: number): number {
  const intervals = plans.map((planned) => planned[collector]!.intervalMs);
  const jumps = intervals.slice(hours).map((later, index) => later / intervals[index]!);
  return Math.max(...jumps.map((jump) => Math.max(jump, 1 / jump)));
}

/** Then a run that does not fit any more is put off to the next month, and what that leaves is spent on the others. */
const LAST_HOURS = 24;
const slowedDown = ["nodes", "details", "sessions", "stats"] as const;

describe.each(fleets)("on the Starter plan, with %o", (fleet) => {
  test("a month is spent evenly to its end: no run breaks off, nothing is left, and no interval jumps", () => {
    const { plans, used, broken, longest } = live(fleet);
    expect(used).toBeGreaterThan(0.999 * CAP);
    expect(broken).toBe(0);
    const steady = plans.slice(0, -LAST_HOURS);
    for (const collector of slowedDown) {
      expect(greatestJump(steady, collector, 1)).toBeLessThan(1.25);
      expect(greatestJump(steady, collector, 24)).toBeLessThan(1.25);
      if (collector !== "details")
        expect(longest[collector]).toBeLessThan(1.25 * plans[0]![collector]!.intervalMs + STEP);
    }
  });

  test("a month of which two thirds have nine tenths of the calls stretches, and is spent to its end all the same", () => {
    const { plans, used, broken } = live(fleet, (2 / 3) * MONTH, 0.9 * CAP);
    expect(used).toBeGreaterThan(0.999 * CAP);
    expect(broken).toBe(0);
    const steady = plans.slice(0, -LAST_HOURS);
    for (const collector of slowedDown) expect(greatestJump(steady, collector, 1)).toBeLessThan(1.5);
  });
});
