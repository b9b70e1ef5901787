import fc from "fast-check";
import { expect, test } from "vitest";
import { COLLECTORS, type Collector } from "../../src/model/snapshot.ts";
import type { Limits } from "../../src/rate-limit/limits.ts";
import { type Plan, planPolling } from "../../src/scheduling/planner.ts";
import {
  CATEGORY_OF_COLLECTOR,
  callsPerRun,
  type PlanInput,
  pollingCapacityOf,
  type RequestedInterval,
} from "../../src/scheduling/polling-capacity.ts";
import { propertyRuns } from "../harness/run-length.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

const requestedInterval = fc
  .tuple(fc.constantFrom(10_000, MINUTE, 5 * MINUTE, 60 * MINUTE), fc.boolean())
  .map(([intervalMs, isCron]): RequestedInterval => ({ intervalMs, isCron: isCron && intervalMs === 60 * MINUTE }));
const requestedIntervals: fc.Arbitrary<PlanInput["requestedIntervals"]> = fc.record({
  nodes: requestedInterval,
  details: fc.oneof(
    fc.constant(null),
    fc.constantFrom(5, 15, 600).map((m) => ({ intervalMs: m * MINUTE, isCron: false })),
  ),
  sessions: fc.option(requestedInterval),
  stats: fc.option(requestedInterval),
  hourly: fc.option(requestedInterval),
});
const limits: fc.Arbitrary<Limits> = fc.record({
  categories: fc.record({
    node_management: fc
      .integer({ min: 10, max: 2_000 })
      .map((requests) => ({ requests, burst: 2 * requests, windowMs: MINUTE })),
    session_monitoring: fc
      .integer({ min: 10, max: 2_000 })
      .map((requests) => ({ requests, burst: 2 * requests, windowMs: MINUTE })),
  }),
  plan: fc.record({
    requestsPerMinute: fc.option(fc.integer({ min: 20, max: 1_000 })),
    concurrentRequests: fc.constant(null),
    callsPerMonth: fc.option(fc.integer({ min: 1_000, max: 2_000_000 })),
  }),
  reserve: fc.constantFrom(0.12, 0.2, 0.5),
});
const recent = fc.record({ hour: fc.nat(300), day: fc.nat(2_000) });
const inputs: fc.Arbitrary<PlanInput> = fc.record({
  requestedIntervals,
  limits,
  nodes: fc.nat(50_000),
  nodePages: fc.nat(500),
  sessionPages: fc.nat(5_000),
  month: fc.record({ callsUsed: fc.nat(2_000_000), leftMs: fc.integer({ min: 1_000, max: 31 * DAY }) }),
  actions: fc.record({ node_management: recent, session_monitoring: recent }),
  externalCalls: fc.record({ node_management: fc.nat(200), session_monitoring: fc.nat(200), plan: fc.nat(200) }),
  reads: fc.subarray([...COLLECTORS]).map((read) => new Set<Collector>(read)),
});

const running = (planned: Plan) => COLLECTORS.filter((collector) => planned[collector] !== null);

/** Calls a minute that the intervals come to. */
const rateOf = (planned: Plan, input: PlanInput, collectors: readonly Collector[]): number =>
  collectors.reduce((sum, collector) => {
    const { intervalMs } = planned[collector] ?? { intervalMs: Number.POSITIVE_INFINITY };
    return sum + (callsPerRun(collector, input) * MINUTE) / intervalMs;
  }, 0);

test("never plans beyond a limit except for cron schedules, and slows a collector down only if a limit is used up", () => {
  fc.assert(
    fc.property(inputs, (input) => {
      const planned = planPolling(input);
      const room = pollingCapacityOf(input);
      for (const bound of ["node_management", "session_monitoring", "plan", "month"] as const) {
        const held = running(planned).filter(
          (collector) => bound === "plan" || bound === "month" || CATEGORY_OF_COLLECTOR[collector] === bound,
        );
        const spent = rateOf(planned, input, held);
        const isCron = rateOf(
          planned,
          input,
          held.filter((collector) => input.requestedIntervals[collector]!.isCron),
        );
        const most = room[bound] ?? Number.POSITIVE_INFINITY;
        expect(spent).toBeLessThanOrEqual(Math.max(isCron, most) * (1 + 1e-6) + 1e-6);
        // A run that comes too late for its month leaves some of it to details alone.
        const isLate = held.some(
          (collector) => planned[collector]!.callsPerMinute > 1.001 * rateOf(planned, input, [collector]),
        );
        const isBinding = held.some((collector) => planned[collector]!.boundBy === bound);
        if (isBinding && !isLate) expect(spent).toBeGreaterThanOrEqual(most * (1 - 1e-6) - 1e-6);
      }
    }),
    propertyRuns(500),
  );
});

/** No collector waits longer under the second plan than under the first. */
function expectNoLonger(first: Plan, second: Plan, collectors: readonly Collector[]) {
  for (const collector of collectors) {
    expect(second[collector]!.intervalMs).toBeLessThanOrEqual(first[collector]!.intervalMs * (1 + 1e-6));
  }
}

test("more calls per month or minute, or a smaller fleet, make no interval longer", () => {
  const changes = fc.record({
    freed: fc.nat(500_000),
    more: fc.nat(500),
    fewer: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(inputs, changes, (input, { freed, more, fewer }) => {
      const { month, limits } = input;
      const first = planPolling(input);
      expectNoLonger(
        first,
        planPolling({ ...input, month: { ...month, callsUsed: Math.max(0, month.callsUsed - freed) } }),
        running(first),
      );
      const { requestsPerMinute, callsPerMonth } = limits.plan;
      const larger = {
        ...limits.plan,
        requestsPerMinute: requestsPerMinute === null ? null : requestsPerMinute + more,
        callsPerMonth: callsPerMonth === null ? null : callsPerMonth + freed,
      };
      expectNoLonger(first, planPolling({ ...input, limits: { ...limits, plan: larger } }), running(first));
      const [nodes, nodePages, sessionPages] = [input.nodes, input.nodePages, input.sessionPages].map((count) =>
        Math.floor(count * fewer),
      ) as [number, number, number];
      expectNoLonger(first, planPolling({ ...input, nodes, nodePages, sessionPages }), running(first));
    }),
    propertyRuns(500),
  );
});

test("more calls of a category make none of its intervals longer; external usage and actions make none shorter", () => {
  fc.assert(
    fc.property(inputs, fc.nat(500), (input, more) => {
      const first = planPolling(input);
      const { categories } = input.limits;
      const node_management = { ...categories.node_management, requests: categories.node_management.requests + more };
      const ofNodes = running(first).filter((collector) => CATEGORY_OF_COLLECTOR[collector] === "node_management");
      const larger = { ...input.limits, categories: { ...categories, node_management } };
      expectNoLonger(first, planPolling({ ...input, limits: larger }), ofNodes);
      const idle = { hour: 0, day: 0 };
      const busy = {
        ...input,
        actions: { ...input.actions!, session_monitoring: idle },
        externalCalls: { ...input.externalCalls!, session_monitoring: 0 },
      };
      const { actions: _actions, externalCalls: _others, ...alone } = input;
      expectNoLonger(planPolling(busy), planPolling(alone), ofNodes);
    }),
    propertyRuns(500),
  );
});
