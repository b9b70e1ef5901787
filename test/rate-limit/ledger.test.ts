import { expect, test } from "vitest";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import { createLedger, type Ledger } from "../../src/rate-limit/ledger.ts";
import { PLANS } from "../../src/rate-limit/limits.ts";
import { type CallOutcome, settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import { limitsWithoutPlan } from "./limited-service.ts";

const waitsAfterRejections = (retryAfterMs: number | null, jitter: number, rejections: number): number[] => {
  const ledger = createLedger(limitsWithoutPlan("enterprise"), 0);
  let now = 10_000;
  return Array.from({ length: rejections }, () => {
    const permit = takePermit(ledger, "node_management", "walk", now);
    settlePermit(ledger, permit, { kind: "rate_limited", reading: null, retryAfterMs }, jitter, now);
    const { at } = availabilityOf(ledger, "node_management", "walk", now);
    const wait = at - now;
    now = at;
    return wait;
  });
};

test("429s without Retry-After wait 1 s, 2 s, 4 s and so on up to five minutes, with full jitter", () => {
  const whole = waitsAfterRejections(null, 1, 11).map((ms) => ms / 1_000);
  expect(whole).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  expect(waitsAfterRejections(null, 0.5, 4)).toEqual([1_000, 1_000, 2_000, 4_000]);
});

test("a 429 with Retry-After waits as long, plus a second for rounding", () => {
  expect(waitsAfterRejections(7_000, 0, 2)).toEqual([8_000, 8_000]);
});

test("a 429 that states the plan's limit holds both categories", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  const permit = takePermit(ledger, "node_management", "walk", 10_000);
  const reading = { limit: 500, remaining: 0, resetAt: null };
  settlePermit(ledger, permit, { kind: "rate_limited", reading, retryAfterMs: 20_000 }, 0, 10_000);
  expect(availabilityOf(ledger, "session_monitoring", "action", 10_000)).toEqual({
    at: 31_000,
    waitReason: "rate_limited",
  });
});

const callNodes = (ledger: Ledger, at: number, outcome: CallOutcome) =>
  settlePermit(ledger, takePermit(ledger, "node_management", "walk", at), outcome, 0, at);

const unexplained: CallOutcome = { kind: "rate_limited", reading: null, retryAfterMs: 20_000 };

test("a 429 without headers may concern the whole account, and holds both categories", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  callNodes(ledger, 10_000, unexplained);
  expect(availabilityOf(ledger, "session_monitoring", "action", 10_000)).toEqual({
    at: 31_000,
    waitReason: "rate_limited",
  });
});

test("429s concern only their category if a call of the other one succeeds in between", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  callNodes(ledger, 10_000, unexplained);
  const session = takePermit(ledger, "session_monitoring", "walk", 40_000);
  settlePermit(ledger, session, { kind: "answered", reading: null }, 0, 40_000);
  callNodes(ledger, 60_000, unexplained);
  expect(availabilityOf(ledger, "session_monitoring", "action", 60_000).at).toBeLessThan(61_000);
  expect(availabilityOf(ledger, "node_management", "action", 60_000)).toEqual({
    at: 81_000,
    waitReason: "rate_limited",
  });
});

test("a category that was held for the 429 of another is available for as long afterwards", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  const sessionsAvailableAt = (now: number) => availabilityOf(ledger, "session_monitoring", "walk", now).at;
  const rejectedForHours: CallOutcome = { kind: "rate_limited", reading: null, retryAfterMs: 3_600_000 };
  callNodes(ledger, 10_000, rejectedForHours);
  expect(sessionsAvailableAt(10_000)).toBe(310_000);
  callNodes(ledger, 320_000, rejectedForHours);
  expect(sessionsAvailableAt(320_000)).toBeLessThan(321_000);
  settlePermit(ledger, takePermit(ledger, "session_monitoring", "walk", 320_000), unexplained, 0, 320_000);
  expect(sessionsAvailableAt(320_000)).toBe(341_000);
  expect(availabilityOf(ledger, "node_management", "walk", 320_000).at).toBe(320_000 + 3_601_000);
});

test("a 429 that states the category's limit holds only that category", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  callNodes(ledger, 10_000, { ...unexplained, reading: { limit: 100, remaining: 0, resetAt: null } });
  expect(availabilityOf(ledger, "session_monitoring", "action", 10_000).waitReason).toBeNull();
});

test("429s of concurrent calls double the wait once", () => {
  const ledger = createLedger(limitsWithoutPlan("enterprise"), 0);
  const permits = [1, 2, 3, 4, 5].map(() => takePermit(ledger, "node_management", "walk", 10_000));
  for (const permit of permits)
    settlePermit(ledger, permit, { kind: "rate_limited", reading: null, retryAfterMs: null }, 1, 10_050);
  expect(ledger.categories.node_management.uncertainHold.until).toBe(11_050);
});

test("a repeated Retry-After is replaced by the doubled backoff once that is longer", () => {
  const waits = waitsAfterRejections(1_000, 1, 11).map((ms) => ms / 1_000);
  expect(waits).toEqual([2, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
});

test("an overloaded service holds its category for the requested time, up to a quarter of an hour", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  callNodes(ledger, 10_000, { kind: "answered", reading: null, retryAfterMs: 60_000 });
  expect(availabilityOf(ledger, "node_management", "action", 10_000)).toEqual({
    at: 71_000,
    waitReason: "rate_limited",
  });
  callNodes(ledger, 100_000, { kind: "answered", reading: null, retryAfterMs: 86_400_000 });
  expect(availabilityOf(ledger, "node_management", "action", 100_000).at).toBe(1_000_000);
});

test("actions may use the rest of a month that polling has used up", () => {
  const limits = { ...limitsWithoutPlan("starter"), plan: PLANS.starter };
  const ledger = createLedger(limits, 0);
  ledger.monthUsed = 99_000;
  expect(availabilityOf(ledger, "node_management", "walk", 10_000).waitReason).toBe("month");
  expect(availabilityOf(ledger, "node_management", "action", 10_000).waitReason).toBeNull();
});

test("polling leaves a reserve of the plan's concurrency, which actions may use", () => {
  const limits = { ...limitsWithoutPlan("enterprise"), plan: { ...PLANS.enterprise, concurrentRequests: 10 } };
  const ledger = createLedger(limits, 0);
  const reading = { limit: 500, remaining: 499, resetAt: null };
  settlePermit(
    ledger,
    takePermit(ledger, "session_monitoring", "walk", 100_000),
    { kind: "answered", reading },
    0,
    100_000,
  );
  for (let call = 0; call < 8; call++) {
    expect(availabilityOf(ledger, "session_monitoring", "walk", 101_000).waitReason).toBeNull();
    takePermit(ledger, "session_monitoring", "walk", 101_000);
  }
  expect(availabilityOf(ledger, "session_monitoring", "walk", 101_000).waitReason).toBe("concurrency");
  expect(availabilityOf(ledger, "session_monitoring", "action", 101_000).waitReason).toBeNull();
});

test("a call delays the next one of its category and of the plan, and an action also the next action", () => {
  const paidBy = (lane: "walk" | "action") => {
    const ledger = createLedger(limitsWithoutPlan("starter"), 0);
    takePermit(ledger, "node_management", lane, 100_000);
    const { pace } = ledger.categories.node_management;
    const { planPace, inFlight, monthUsed } = ledger;
    const paidUntil = [pace.paidUntil, planPace.paidUntil, pace.actionsPaidUntil, planPace.actionsPaidUntil];
    const costs = paidUntil.map((at) => Math.max(0, Math.round(at - 100_000)));
    return { costs, inFlight, monthUsed };
  };
  expect(paidBy("walk")).toEqual({ costs: [759, 759, 0, 0], inFlight: 1, monthUsed: 1 });
  expect(paidBy("action")).toEqual({ costs: [759, 759, 1_500, 1_500], inFlight: 1, monthUsed: 1 });
});

test("a call that was not sent does not count in the month, and a lost one does", () => {
  const usedAfter = (kind: "unused" | "lost") => {
    const ledger = createLedger(limitsWithoutPlan("starter"), 0);
    settlePermit(ledger, takePermit(ledger, "node_management", "walk", 1_000), { kind }, 0, 1_100);
    return [ledger.monthUsed, ledger.inFlight, ledger.externalUsage.node_management.own.sent.count()];
  };
  expect([usedAfter("unused"), usedAfter("lost")]).toEqual([
    [0, 0, 0],
    [1, 0, 1],
  ]);
});
