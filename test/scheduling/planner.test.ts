import fc from "fast-check";
import { expect, test } from "vitest";
import { COLLECTORS } from "../../src/model/snapshot.ts";
import { runBudgetOf } from "../../src/rate-limit/monthly-budget.ts";
import { FRESH_MS_MAX, planPolling } from "../../src/scheduling/planner.ts";
import { type PlanInput, pollingCapacityOf } from "../../src/scheduling/polling-capacity.ts";
import { createPlanLimits } from "../harness/daemon/virtual-daemon.ts";
import { limitsWithoutPlan } from "../rate-limit/limited-service.ts";

const MINUTE = 60_000;
const every = (intervalMs: number) => ({ intervalMs, isCron: false });
const input = (parts: Partial<PlanInput>): PlanInput => ({
  requestedIntervals: {
    nodes: every(MINUTE),
    details: every(15 * MINUTE),
    sessions: every(MINUTE),
    stats: every(MINUTE),
    hourly: { intervalMs: 60 * MINUTE, isCron: true },
  },
  nodes: 500,
  nodePages: 1,
  sessionPages: 5,
  limits: createPlanLimits("enterprise"),
  reads: new Set(),
  month: { callsUsed: 0, leftMs: 30 * 24 * 60 * MINUTE },
  ...parts,
});

test("meets requested intervals that fit the limits", () => {
  const planned = planPolling(input({}));
  for (const collector of COLLECTORS) expect(planned[collector]).toMatchObject({ slowdown: 1, boundBy: null });
  expect(planned.details?.callsPerMinute).toBeCloseTo(500 / 15);
});

test("slows down the details of 5,000 nodes, but not their list", () => {
  const planned = planPolling(input({ nodes: 5_000, nodePages: 5 }));
  expect(planned.nodes).toMatchObject({ intervalMs: MINUTE, boundBy: null });
  expect(planned.details).toMatchObject({ boundBy: "node_management" });
  expect(planned.details?.callsPerMinute).toBeCloseTo(75);
  expect(planned.details?.intervalMs).toBeCloseTo((5_000 / 75) * MINUTE);
});

test("if a limit binds, a list pays for its repeated pages and lookups with an interval that is at most 15% longer", () => {
  const plan = (nodes: number) => planPolling(input({ nodes: 5_000, nodePages: 50, walkCalls: { nodes } }));
  expect(plan(55).nodes!.intervalMs).toBeCloseTo(1.1 * MINUTE);
  expect(plan(55).nodes!.boundBy).toBe("node_management");
  expect(plan(55).details!.intervalMs).toBeCloseTo(plan(50).details!.intervalMs);
  expect(plan(69).nodes!.intervalMs).toBeCloseTo(1.15 * MINUTE);
  expect(plan(69).details!.callsPerMinute).toBeCloseTo(plan(50).details!.callsPerMinute - 10);
  const small = planPolling(input({ nodes: 50, nodePages: 1, walkCalls: { nodes: 2 } }));
  expect(small.nodes).toMatchObject({ intervalMs: MINUTE, boundBy: null, callsPerMinute: 2 });
});

test("a list gets the calls that the others leave before it is slowed down", () => {
  const planned = planPolling(input({ nodes: 376, nodePages: 50, walkCalls: { nodes: 57.5 } }));
  const used = planned.nodes!.callsPerMinute + planned.details!.callsPerMinute;
  expect(used).toBeCloseTo(80);
  expect(planned.nodes!.intervalMs).toBeLessThan(1.05 * MINUTE);
});

test("a list on a cron schedule keeps its schedule despite its repeated pages and lookups", () => {
  const requestedIntervals = { ...input({}).requestedIntervals, nodes: { intervalMs: 10 * MINUTE, isCron: true } };
  const planned = planPolling(
    input({
      nodes: 2_000,
      nodePages: 5,
      walkCalls: { nodes: 5.5 },
      limits: createPlanLimits("starter"),
      requestedIntervals,
    }),
  );
  expect(planned.nodes).toMatchObject({ slowdown: 1, boundBy: null });
});

test("on the Starter plan the month binds, and the plan uses all of it", () => {
  const planned = planPolling(input({ limits: createPlanLimits("starter") }));
  const calls = COLLECTORS.reduce((sum, collector) => sum + planned[collector]!.callsPerMinute, 0);
  expect(calls).toBeCloseTo(99_000 / (30 * 24 * 60));
  expect(planned.details?.boundBy).toBe("month");
  expect(planned.hourly).toMatchObject({ slowdown: 1, boundBy: null });
});

test("a collector that is off leaves its share to the others", () => {
  const base = input({ limits: createPlanLimits("starter") });
  const planned = planPolling({ ...base, requestedIntervals: { ...base.requestedIntervals, details: null } });
  expect(planned.details).toBeNull();
  expect(planned.sessions!.callsPerMinute).toBeGreaterThan(planPolling(base).sessions!.callsPerMinute);
});

test("plans no calls in a month that is used up", () => {
  const planned = planPolling(
    input({ limits: createPlanLimits("starter"), month: { callsUsed: 100_000, leftMs: MINUTE } }),
  );
  expect(planned.nodes).toMatchObject({ intervalMs: Number.POSITIVE_INFINITY, boundBy: "month" });
});

test("no plan exceeds a limit, has a slowdown below 1, or slows a collector down without need", () => {
  const inputs = fc.record({
    nodes: fc.nat(100_000),
    nodePages: fc.integer({ min: 1, max: 2_000 }),
    sessionPages: fc.integer({ min: 1, max: 10_000 }),
    name: fc.constantFrom("starter", "business", "enterprise" as const),
    callsUsed: fc.nat(100_000),
  });
  fc.assert(
    fc.property(inputs, ({ nodes, nodePages, sessionPages, name, callsUsed }) => {
      const month = { callsUsed, leftMs: 10 * 24 * 60 * MINUTE };
      const planned = planPolling(input({ nodes, nodePages, sessionPages, limits: createPlanLimits(name), month }));
      // What is really spent follows from the intervals, not from what the plan says of its rates.
      const calls = { nodes: nodePages, details: Math.max(1, nodes), sessions: sessionPages, stats: 1, hourly: 1 };
      const rate = (...collectors: (typeof COLLECTORS)[number][]) =>
        collectors.reduce((sum, collector) => sum + (calls[collector] * MINUTE) / planned[collector]!.intervalMs, 0);
      const cap = createPlanLimits(name).plan;
      const slack = 1 + 1e-6;
      const caps = {
        node_management: { callsUsed: rate("nodes", "details"), most: 80 },
        session_monitoring: { callsUsed: rate("sessions", "stats", "hourly"), most: 400 },
        plan: {
          callsUsed: rate(...COLLECTORS),
          most: cap.requestsPerMinute === null ? Infinity : cap.requestsPerMinute * 0.8,
        },
        month: {
          callsUsed: rate(...COLLECTORS),
          most:
            cap.callsPerMonth === null
              ? Infinity
              : Math.max(0, (cap.callsPerMonth * 0.99 - callsUsed) / (10 * 24 * 60)),
        },
      };
      for (const { callsUsed: spent, most } of Object.values(caps)) expect(spent).toBeLessThanOrEqual(most * slack);
      for (const collector of COLLECTORS) {
        const { slowdown, boundBy } = planned[collector]!;
        expect(slowdown).toBeGreaterThanOrEqual(1);
        if (boundBy !== null) expect(caps[boundBy].callsUsed).toBeGreaterThanOrEqual(caps[boundBy].most * 0.999);
      }
    }),
  );
});

test("keeps a requested interval of a month, and reads a fleet that is too large for its month in more than a week", () => {
  const base = input({ nodes: 100, limits: createPlanLimits("starter") });
  const rare = planPolling({
    ...base,
    requestedIntervals: { ...base.requestedIntervals, details: every(30 * 24 * 60 * MINUTE) },
  });
  expect(rare.details).toMatchObject({ slowdown: 1, intervalMs: 30 * 24 * 60 * MINUTE });
  const large = planPolling(input({ nodes: 100_000, nodePages: 100, limits: createPlanLimits("starter") }));
  expect(large.details!.intervalMs).toBeGreaterThan(60 * 24 * 60 * MINUTE);
});

test("data is fresh for three intervals, or three times the duration of a run", () => {
  expect(planPolling(input({})).nodes!.freshMs).toBe(3 * MINUTE);
  expect(planPolling(input({ measuredDurations: { nodes: 5 * MINUTE } })).nodes!.freshMs).toBe(15 * MINUTE);
  expect(planPolling(input({ measuredDurations: { nodes: 10 } })).nodes!.freshMs).toBe(3 * MINUTE);
  expect(planPolling(input({ longestIntervals: { nodes: 20 * MINUTE } })).nodes!.freshMs).toBe(60 * MINUTE);
});

test("once the month is used up, data is fresh by the last finite interval", () => {
  const month = { callsUsed: 100_000, leftMs: 10 * 24 * 60 * MINUTE };
  const spent = planPolling(
    input({ limits: createPlanLimits("starter"), month, pacedIntervals: { nodes: 4 * MINUTE } }),
  );
  expect(spent.nodes).toMatchObject({ pacedMs: 4 * MINUTE, freshMs: 12 * MINUTE });
  expect(spent.sessions).toMatchObject({ pacedMs: MINUTE, freshMs: 3 * MINUTE });
});

test("postponing a run to the next month does not make older data fresh", () => {
  const month = { callsUsed: 98_500, leftMs: 10 * 24 * 60 * MINUTE };
  const planned = planPolling(input({ limits: createPlanLimits("starter"), month, sessionPages: 1_000 })).sessions!;
  expect(planned.intervalMs).toBeGreaterThanOrEqual(month.leftMs);
  expect(planned.freshMs).toBeLessThanOrEqual(FRESH_MS_MAX.sessions);
});

test("data is fresh for at most its maximum, unless a longer interval is configured", () => {
  const requestedIntervals = { ...input({}).requestedIntervals, stats: every(7 * 24 * 60 * MINUTE) };
  const planned = planPolling(
    input({ requestedIntervals, nodes: 100_000, nodePages: 2_000, limits: createPlanLimits("starter") }),
  );
  expect(planned.nodes!.freshMs).toBe(FRESH_MS_MAX.nodes);
  expect(planned.details!.freshMs).toBe(FRESH_MS_MAX.details);
  expect(planned.stats!.freshMs).toBe(3 * 7 * 24 * 60 * MINUTE);
});

test("a run may use its expected calls, or a share of the calls left in the month", () => {
  expect(runBudgetOf(1_000, 99_000)).toEqual({ callsAtOnce: 1_980, calls: 9_900 });
  expect(runBudgetOf(1_000, 2_000)).toEqual({ callsAtOnce: 1_000, calls: 2_000 });
  expect(runBudgetOf(1, 0)).toEqual({ callsAtOnce: 20, calls: 20 });
  expect(runBudgetOf(1, null).calls).toBe(Number.POSITIVE_INFINITY);
});

test("leaves actions the calls of the last hour or day, but at most half", () => {
  const actions = { node_management: { hour: 120, day: 120 }, session_monitoring: { hour: 0, day: 1_440 } };
  expect(pollingCapacityOf(input({ actions }))).toMatchObject({
    node_management: 78,
    session_monitoring: 399,
    plan: null,
  });
  expect(pollingCapacityOf(input({ actions, limits: createPlanLimits("business") })).plan).toBe(397);
  const many = { ...actions, node_management: { hour: 6_000, day: 6_000 } };
  expect(pollingCapacityOf(input({ actions: many })).node_management).toBe(40);
});

test("spreads the calls left evenly over the rest of the month, including those paid ahead", () => {
  const starter = (callsUsed: number) =>
    input({ limits: createPlanLimits("starter"), month: { callsUsed, leftMs: 100 * MINUTE } });
  expect([pollingCapacityOf(starter(98_000)).month, pollingCapacityOf(starter(98_000), 500).month]).toEqual([10, 15]);
  expect([pollingCapacityOf(starter(99_000)).month, pollingCapacityOf(starter(99_000), 500).month]).toEqual([0, 0]);
});

test("collectors that policies read get twice the share of a scarce limit", () => {
  const ratio = (reads: PlanInput["reads"]) => {
    const planned = planPolling(input({ limits: createPlanLimits("starter"), reads }));
    return planned.details!.callsPerMinute / planned.sessions!.callsPerMinute;
  };
  expect(ratio(new Set())).toBeCloseTo(1);
  expect(ratio(new Set(["details"]))).toBeCloseTo(2);
});

test("data is half an interval old on average and an interval at most; details under a scarce limit are slightly older", () => {
  const planned = planPolling(input({}));
  expect(planned.nodes!.age).toEqual({ medianMs: MINUTE / 2, worstMs: MINUTE });
  expect(planned.hourly!.age).toEqual({ medianMs: 30 * MINUTE, worstMs: 60 * MINUTE });
  expect(planned.details!.age).toEqual({ medianMs: 7.5 * MINUTE, worstMs: 15 * MINUTE });
  const { intervalMs, age } = planPolling(input({ nodes: 5_000, nodePages: 5 })).details!;
  expect(age.medianMs).toBe(intervalMs / 2);
  // Suspects take one read in six, and those that were saved up for.
  expect(age.worstMs).toBeCloseTo(intervalMs * (1.2 + 0.05 + 2 / 5_000), 3);
});

test("the age of sessions includes the duration of their walk, which uses the calls that others leave", () => {
  const ofWalk = (calls: number) => ({ medianMs: (MINUTE + calls) / 2, worstMs: MINUTE + calls });
  const walkMs = (rate: number) => (5 * MINUTE) / rate;
  const near = ({ medianMs, worstMs }: { medianMs: number; worstMs: number }) => [
    medianMs.toFixed(3),
    worstMs.toFixed(3),
  ];
  const alone = 400 - 1 - 1 / 60;
  expect(near(planPolling(input({})).sessions!.age)).toEqual(near(ofWalk(walkMs(alone))));
  const underPlan = 400 - 1 - 500 / 15 - 1 - 1 / 60;
  const business = planPolling(input({ limits: limitsWithoutPlan("business") }));
  expect(near(business.sessions!.age)).toEqual(near(ofWalk(walkMs(underPlan))));
});

test("postpones a run that the month can't finish, without the calls promised to other runs", () => {
  const sessions = (runs?: PlanInput["runs"], sessionPages = 400) => {
    const month = { callsUsed: 98_000, leftMs: 60 * MINUTE };
    return planPolling(
      input({ limits: createPlanLimits("starter"), month, sessionPages, ...(runs === undefined ? {} : { runs }) }),
    ).sessions!;
  };
  const run = (calls: number, made = 0, sinceMs = 0) => ({ calls, callsMade: made, sinceMs });
  expect(sessions().intervalMs).toBeLessThan(60 * MINUTE);
  expect(sessions({ nodes: run(600) }).intervalMs).toBeLessThan(60 * MINUTE);
  expect(sessions({ nodes: run(601) })).toMatchObject({ intervalMs: 60 * MINUTE, boundBy: "month" });
  expect(sessions({ nodes: run(700, 200) }).intervalMs).toBeLessThan(60 * MINUTE);
  expect(sessions({ sessions: run(700) }).intervalMs).toBeLessThan(60 * MINUTE);
  const begun = { nodes: run(601), sessions: run(400, 400, 5 * MINUTE) };
  expect(sessions(begun)).toMatchObject({ intervalMs: 65 * MINUTE, boundBy: "month" });
  // A run that pays for much time beyond the month would take it from the others.
  expect(sessions(undefined, 600).intervalMs).toBeCloseTo((600 / 400) * sessions().intervalMs, 3);
  expect(sessions(undefined, 600).boundBy).toBe("month");
});
