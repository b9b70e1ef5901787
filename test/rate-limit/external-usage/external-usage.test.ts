import { expect, test } from "vitest";
import { expectedCallsOfPlan } from "../../../src/rate-limit/external-usage/external-usage.ts";
import { createLedger, type Ledger } from "../../../src/rate-limit/ledger.ts";
import { type Category, type Limits, PLANS } from "../../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../../src/rate-limit/permits.ts";

const MINUTE = 60_000;
const limitsOf = (plan: keyof typeof PLANS): Limits => ({
  categories: {
    node_management: { requests: 100, burst: 100, windowMs: MINUTE },
    session_monitoring: { requests: 500, burst: 500, windowMs: MINUTE },
  },
  plan: { ...PLANS[plan], callsPerMonth: null },
  reserve: 0.2,
});
const start = (plan: keyof typeof PLANS) => createLedger(limitsOf(plan), 0, 0);

/** One call of ours, answered at once with what is left of a limit. */
function state(ledger: Ledger, category: Category, limit: number, remaining: number, now: number): void {
  const permit = takePermit(ledger, category, "walk", now);
  const reading = { limit, remaining, resetAt: now + MINUTE };
  settlePermit(ledger, permit, { kind: "answered", reading }, 0, now + 10);
}

function refuse(ledger: Ledger, category: Category, limit: number, remaining: number, now: number): void {
  const permit = takePermit(ledger, category, "walk", now);
  const reading = { limit, remaining, resetAt: now + MINUTE };
  settlePermit(ledger, permit, { kind: "refused", reading, retryAfterMs: 1_000 }, 0, now + 10);
}

const totals = ({ externalUsage: others }: Ledger) => [
  others.node_management.provenCalls(),
  others.session_monitoring.provenCalls(),
  others.plan.provenCalls(),
];

test("calls of others are counted under the limit that the header speaks of", () => {
  const ledger = start("business");
  state(ledger, "node_management", 100, 99, 0);
  state(ledger, "node_management", 100, 68, 1_000);
  expect(totals(ledger)).toEqual([30, 0, 0]);
  const ofPlan = start("business");
  state(ofPlan, "node_management", 500, 499, 0);
  state(ofPlan, "session_monitoring", 500, 468, 1_000);
  expect(totals(ofPlan)).toEqual([0, 0, 30]);
});

test("a limit that may be either counts all our calls, until an answer tells which it is", () => {
  const ledger = start("starter");
  state(ledger, "node_management", 100, 99, 0);
  // Of the plan, where our two calls are among the 21 that are gone since.
  state(ledger, "node_management", 100, 78, 1_000);
  expect(totals(ledger)).toEqual([0, 0, 20]);
  state(ledger, "session_monitoring", 500, 499, 2_000);
  state(ledger, "node_management", 100, 77, 3_000);
  state(ledger, "node_management", 100, 66, 4_000);
  expect(totals(ledger)).toEqual([10, 0, 20]);
});

test("under the plan at least as many are expected as in all categories together", () => {
  const ledger = start("business");
  state(ledger, "node_management", 100, 99, 0);
  state(ledger, "session_monitoring", 500, 499, 0);
  state(ledger, "node_management", 100, 68, 40_000);
  state(ledger, "session_monitoring", 500, 458, 40_000);
  const { node_management, session_monitoring } = ledger.externalUsage;
  const expected = node_management.expectedCalls(50_000) + session_monitoring.expectedCalls(50_000);
  expect(expected).toBeGreaterThan(70);
  expect(expectedCallsOfPlan(ledger.externalUsage, ledger.limits, 50_000)).toBe(expected);
});

test("a refusal says that what is spent and isn't ours is theirs, and half of ours is left to them as well", () => {
  const ledger = start("enterprise");
  for (let call = 0; call < 40; call++) state(ledger, "node_management", 100, 99 - call, call * 100);
  refuse(ledger, "node_management", 100, 0, 5_000);
  const half = 100 - 41 / 2;
  expect(ledger.externalUsage.node_management.expectedCalls(6_000)).toBe(Math.ceil(half * 1.1 + 1));
  // They are not proved: the service may have reasons of its own.
  expect(totals(ledger)).toEqual([0, 0, 0]);
});

test("a refusal that names another limit, or that something is left, tells nothing of others", () => {
  const ledger = start("business");
  refuse(ledger, "node_management", 50, 0, 0);
  refuse(ledger, "node_management", 100, 40, 1_000);
  const permit = takePermit(ledger, "node_management", "walk", 2_000);
  settlePermit(ledger, permit, { kind: "refused", reading: null, retryAfterMs: null }, 0, 2_010);
  expect(ledger.externalUsage.node_management.expectedCalls(3_000)).toBe(0);
  expect(ledger.externalUsage.plan.expectedCalls(3_000)).toBe(0);
});

test("of a plan and a category that are as large it is the plan that refused", () => {
  const ledger = start("starter");
  refuse(ledger, "node_management", 100, 0, 0);
  expect(ledger.externalUsage.node_management.expectedCalls(1_000)).toBe(0);
  expect(ledger.externalUsage.plan.expectedCalls(1_000)).toBe(100);
});

test("a limit larger than ours is of something wider: what is missing from it says nothing of our month", () => {
  const ledger = start("business");
  for (const remaining of [1_000_000, 500_000, 0]) {
    state(ledger, "node_management", 1_000_000, remaining, remaining === 0 ? 2 * MINUTE : MINUTE);
  }
  expect(totals(ledger)).toEqual([0, 0, 0]);
  expect(ledger.externalUsage.node_management.likelyCalls()).toBe(0);
});
