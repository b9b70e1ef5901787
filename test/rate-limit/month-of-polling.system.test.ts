import { describe, expect, test } from "vitest";
import { byName } from "../../src/base/by-name.ts";
import { COLLECTORS, type Collector } from "../../src/model/snapshot.ts";
import type { LastRun } from "../../src/rate-limit/monthly-budget.ts";
import { type Plan, planPolling } from "../../src/scheduling/planner.ts";
import { callsPerRun, type PlanInput } from "../../src/scheduling/polling-capacity.ts";
import { createPlanLimits } from "../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../harness/run-length.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** A short month with as many calls per day as in the Starter plan. */
const MONTH = 10 * DAY;
const STEP = isLongRun ? MINUTE : 2 * MINUTE;
const CALLS_PER_STEP = 80 * (STEP / MINUTE);
const starter = createPlanLimits("starter");
const limits = { ...starter, plan: { ...starter.plan, callsPerMonth: 33_334 } };
/** Calls of the month for polling. */
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
  /** Number of steps in which a run lacked calls to continue. */
  readonly interrupted: number;
  /** Maximum time between two runs of each collector. */
  readonly longestIntervals: Readonly<Record<Collector, number>>;
}

/** Simulates polling by plan until the end of the month, with 80 calls per minute, from `fromMs` with `used` calls. */
function simulateMonth(fleet: Fleet, fromMs = 0, used = 0): MonthOfPolling {
  const plans: Plan[] = [];
  const runs: Partial<Record<Collector, { startedAt: number; calls: number; callsMade: number }>> = {};
  const longestIntervals = byName(COLLECTORS, () => 0);
  let interrupted = 0;
  let details = 0;
  for (let now = fromMs; now < MONTH; now += STEP) {
    let planned = planPolling(inputAt(fleet, now, used, runs));
    if ((now - fromMs) % HOUR === 0) plans.push(planned);
    for (const collector of ["nodes", "sessions", "stats", "hourly"] as const) {
      const run = runs[collector];
      const due = run === undefined ? now : run.startedAt + planned[collector]!.intervalMs;
      if (due <= now) {
        const calls = callsPerRun(collector, fleet);
        if (run !== undefined) longestIntervals[collector] = Math.max(longestIntervals[collector], now - run.startedAt);
        runs[collector] = { startedAt: now, calls, callsMade: 0 };
        planned = planPolling(inputAt(fleet, now, used, runs));
      }
      const current = runs[collector];
      if (current === undefined) continue;
      const callsMade = Math.min(CALLS_PER_STEP, current.calls - current.callsMade, CAP - used);
      if (current.callsMade < current.calls && callsMade === 0) interrupted++;
      current.callsMade += callsMade;
      used += callsMade;
    }
    details += STEP / (planned.details!.intervalMs / fleet.nodes);
    const read = Math.min(Math.floor(details), CAP - used);
    details -= read;
    used += read;
  }
  return { plans, used, interrupted, longestIntervals };
}

function inputAt(fleet: Fleet, now: number, used: number, runs: Record<string, unknown>): PlanInput {
  const every = (intervalMs: number) => ({ intervalMs, isCron: false });
  const lastRuns = Object.fromEntries(
    Object.entries(runs as Record<string, { startedAt: number } & Omit<LastRun, "sinceMs">>).map(([collector, run]) => [
      collector,
      { ...run, sinceMs: now - run.startedAt },
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
    reads: new Set(),
    month: { callsUsed: used, leftMs: MONTH - now },
    runs: lastRuns,
  };
}

const fleets: readonly Fleet[] = [
  { nodes: 200, nodePages: 1, sessionPages: 2 },
  ...(isLongRun
    ? [
        { nodes: 5_000, nodePages: 5, sessionPages: 50 },
        { nodes: 5_000, nodePages: 50, sessionPages: 500 },
      ]
    : []),
  { nodes: 100_000, nodePages: 100, sessionPages: 1_000 },
];

/** Maximum ratio between an interval and the one `hours` before it. */
function greatestJump(plans: readonly Plan[], collector: Collector, hours: number): number {
  const intervals = plans.map((planned) => planned[collector]!.intervalMs);
  const jumps = intervals.slice(hours).map((later, index) => later / intervals[index]!);
  return Math.max(...jumps.map((jump) => Math.max(jump, 1 / jump)));
}

/** Hours in which long runs are postponed to the next month, and others use their calls. */
const LAST_HOURS = 24;
const slowedDown = ["nodes", "details", "sessions", "stats"] as const;

describe.each(fleets)("on the Starter plan with %o", (fleet) => {
  test("the month is used evenly: no run is interrupted, no calls are left, and no interval jumps", () => {
    const { plans, used, interrupted, longestIntervals } = simulateMonth(fleet);
    expect(used).toBeGreaterThan(0.999 * CAP);
    expect(interrupted).toBe(0);
    const steady = plans.slice(0, -LAST_HOURS);
    for (const collector of slowedDown) {
      expect(greatestJump(steady, collector, 1)).toBeLessThan(1.25);
      expect(greatestJump(steady, collector, 24)).toBeLessThan(1.25);
      if (collector !== "details")
        expect(longestIntervals[collector]).toBeLessThan(1.25 * plans[0]![collector]!.intervalMs + STEP);
    }
  });

  test("the rest of a month with too few calls is used evenly as well", () => {
    const { plans, used, interrupted } = simulateMonth(fleet, (2 / 3) * MONTH, 0.9 * CAP);
    expect(used).toBeGreaterThan(0.999 * CAP);
    expect(interrupted).toBe(0);
    const steady = plans.slice(0, -LAST_HOURS);
    for (const collector of slowedDown) expect(greatestJump(steady, collector, 1)).toBeLessThan(1.5);
  });
});
