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
const start = (plan: keyof typeof PLANS) => createLedger(limitsOf(plan), 0);

/** Makes a call whose response states a limit. */
function callStating(ledger: Ledger, category: Category, limit: number, remaining: number, now: number): void {
  const permit = takePermit(ledger, category, "walk", now);
  const reading = { limit, remaining, resetAt: now + MINUTE };
  settlePermit(ledger, permit, { kind: "answered", reading }, 0, now + 10);
}

function callRejected(ledger: Ledger, category: Category, limit: number, remaining: number, now: number): void {
  const permit = takePermit(ledger, category, "walk", now);
  const reading = { limit, remaining, resetAt: now + MINUTE };
  settlePermit(ledger, permit, { kind: "rate_limited", reading, retryAfterMs: 1_000 }, 0, now + 10);
}

const provenCalls = ({ externalUsage }: Ledger) => [
  externalUsage.node_management.provenCalls(),
  externalUsage.session_monitoring.provenCalls(),
  externalUsage.plan.provenCalls(),
];

test("counts external calls under the limit that the header states", () => {
  const ledger = start("business");
  callStating(ledger, "node_management", 100, 99, 0);
  callStating(ledger, "node_management", 100, 68, 1_000);
  expect(provenCalls(ledger)).toEqual([30, 0, 0]);
  const ofPlan = start("business");
  callStating(ofPlan, "node_management", 500, 499, 0);
  callStating(ofPlan, "session_monitoring", 500, 468, 1_000);
  expect(provenCalls(ofPlan)).toEqual([0, 0, 30]);
});

test("an ambiguous limit is taken for the plan's until a response shows which one it is", () => {
  const ledger = start("starter");
  callStating(ledger, "node_management", 100, 99, 0);
  // The plan's limit: one of our calls is among the 21 that were used since.
  callStating(ledger, "node_management", 100, 78, 1_000);
  expect(provenCalls(ledger)).toEqual([0, 0, 20]);
  callStating(ledger, "session_monitoring", 500, 499, 2_000);
  callStating(ledger, "node_management", 100, 77, 3_000);
  callStating(ledger, "node_management", 100, 66, 4_000);
  expect(provenCalls(ledger)).toEqual([10, 0, 20]);
});

test("expects at least as many calls under the plan as in all categories together", () => {
  const ledger = start("business");
  callStating(ledger, "node_management", 100, 99, 0);
  callStating(ledger, "session_monitoring", 500, 499, 0);
  callStating(ledger, "node_management", 100, 68, 40_000);
  callStating(ledger, "session_monitoring", 500, 458, 40_000);
  const { node_management, session_monitoring } = ledger.externalUsage;
  const expected = node_management.expectedCalls(50_000) + session_monitoring.expectedCalls(50_000);
  expect(expected).toBeGreaterThan(70);
  expect(expectedCallsOfPlan(ledger, 50_000)).toBe(expected);
});

test("after a 429 all calls but half of ours are expected from others", () => {
  const ledger = start("enterprise");
  for (let call = 0; call < 40; call++) callStating(ledger, "node_management", 100, 99 - call, call * 100);
  callRejected(ledger, "node_management", 100, 0, 5_000);
  const half = 100 - 41 / 2;
  expect(ledger.externalUsage.node_management.expectedCalls(6_000)).toBe(Math.ceil(half * 1.1 + 1));
  // They are not proven: the 429 may have other reasons.
  expect(provenCalls(ledger)).toEqual([0, 0, 0]);
});

test("a 429 with an unknown limit or with remaining calls shows no external usage", () => {
  const ledger = start("business");
  callRejected(ledger, "node_management", 50, 0, 0);
  callRejected(ledger, "node_management", 100, 40, 1_000);
  const permit = takePermit(ledger, "node_management", "walk", 2_000);
  settlePermit(ledger, permit, { kind: "rate_limited", reading: null, retryAfterMs: null }, 0, 2_010);
  expect(ledger.externalUsage.node_management.expectedCalls(3_000)).toBe(0);
  expect(ledger.externalUsage.plan.expectedCalls(3_000)).toBe(0);
});

test("a 429 is the plan's if its limit equals the category's", () => {
  const ledger = start("starter");
  callRejected(ledger, "node_management", 100, 0, 0);
  expect(ledger.externalUsage.node_management.expectedCalls(1_000)).toBe(0);
  expect(ledger.externalUsage.plan.expectedCalls(1_000)).toBe(100);
});

test("a limit above the category's does not count external calls in our month", () => {
  const ledger = start("business");
  for (const remaining of [1_000_000, 500_000, 0]) {
    callStating(ledger, "node_management", 1_000_000, remaining, remaining === 0 ? 2 * MINUTE : MINUTE);
  }
  expect(provenCalls(ledger)).toEqual([0, 0, 0]);
  expect(ledger.externalUsage.node_management.likelyCalls()).toBe(0);
});
