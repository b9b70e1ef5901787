import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import {
  createLearnedLimit,
  currentLearnedLimit,
  gatewayAvailableAt,
  hasLearnedLimit,
  type LearnedLimit,
  learnedLimitAvailableAt,
  learnedLimitOf,
  learnFromAnswer,
  learnFromRejection,
  payGatewayLimit,
  payLearnedLimit,
} from "../../src/rate-limit/learned-limit.ts";
import { createLedger } from "../../src/rate-limit/ledger.ts";
import { limitsWithoutPlan } from "./limited-service.ts";

const BASIS = { maximum: 80, windowMs: MINUTE_MS };
const NEVER = Number.NEGATIVE_INFINITY;

/** A limit of 40 calls per minute that was learned at 0, after which a call succeeded. */
const learnedAs = (overrides: Partial<LearnedLimit> = {}): LearnedLimit => ({
  ...createLearnedLimit(),
  calls: 40,
  changedAt: 0,
  ...overrides,
});

/** Records a 429. Returns the new limit in calls per minute. */
function limitAfterRejection(
  learned: LearnedLimit,
  { now = 0, sentAt = now, callsMade = 100, othersAnsweredAt = NEVER }: Partial<Record<string, number>> = {},
): number {
  learnFromRejection(learned, { sentAt, callsMade, othersAnsweredAt }, BASIS, now);
  return learned.calls;
}

test("without a learned limit no call waits, or delays the next one", () => {
  const learned = createLearnedLimit();
  payLearnedLimit(learned, "action", BASIS, 0);
  expect(hasLearnedLimit(learned)).toBe(false);
  expect(currentLearnedLimit(learned, BASIS, 0)).toBe(Number.POSITIVE_INFINITY);
  expect([learned.pace.paidUntil, learned.pace.actionsPaidUntil]).toEqual([NEVER, NEVER]);
  expect([learnedLimitAvailableAt(learned, "walk"), learnedLimitAvailableAt(learned, "action")]).toEqual([
    NEVER,
    NEVER,
  ]);
});

describe("a 429", () => {
  test("first sets the limit to a tenth below the maximum, however few calls were made", () => {
    const learned = createLearnedLimit();
    expect(limitAfterRejection(learned, { now: 1_000, callsMade: 10 })).toBe(72);
    expect(learned).toMatchObject({ changedAt: 1_000, hasSucceeded: false, previousCalls: 0 });
  });

  test("then sets the limit to a tenth below the call rate, but at least to half", () => {
    const limits = [100, 40, 30, 10].map((callsMade) => limitAfterRejection(learnedAs(), { callsMade }));
    expect(limits).toEqual([36, 36, 27, 20]);
  });

  test("counts once for concurrent calls", () => {
    expect(limitAfterRejection(learnedAs({ changedAt: 1_000 }), { now: 2_000, sentAt: 999 })).toBe(40);
    expect(limitAfterRejection(learnedAs({ changedAt: 1_000 }), { now: 1_000, sentAt: 1_000 })).toBe(36);
  });

  test("right after another one halves the limit, but only if calls of another category succeeded in between", () => {
    const unanswered = (overrides: Partial<LearnedLimit> = {}) => learnedAs({ hasSucceeded: false, ...overrides });
    expect(limitAfterRejection(unanswered(), { othersAnsweredAt: 0 })).toBe(40);
    const learned = unanswered();
    expect(limitAfterRejection(learned, { othersAnsweredAt: 1 })).toBe(20);
    expect(learned.previousCalls).toBe(40);
    expect(limitAfterRejection(learned, { othersAnsweredAt: 1 })).toBe(10);
    expect(learned.previousCalls).toBe(40);
    expect(limitAfterRejection(unanswered({ calls: 1.5 }), { othersAnsweredAt: 1 })).toBe(1);
    expect(limitAfterRejection(unanswered({ calls: 0.5 }), { othersAnsweredAt: 1 })).toBe(0.5);
  });

  test("after a success forgets the limit before 429s in a row", () => {
    const learned = learnedAs({ previousCalls: 50 });
    limitAfterRejection(learned);
    expect(learned.previousCalls).toBe(0);
  });

  test("after an hour without one reverts the fast growth, or decreases the limit by a tenth", () => {
    const limitAt = (now: number) => limitAfterRejection(learnedAs({ calls: 4 }), { now, callsMade: 3 });
    const proven = 4 * 0.9 ** -0.6;
    expect(limitAt(HOUR_MS)).toBeCloseTo(2.7, 9);
    expect(limitAt(HOUR_MS + 1)).toBeCloseTo(proven * 0.9, 3);
    expect(limitAt(HOUR_MS + 20 * MINUTE_MS)).toBeCloseTo(proven, 9);
  });

  test("leaves at least one call in ten minutes", () => {
    expect(limitAfterRejection(learnedAs({ calls: 0.1 }), { callsMade: 0 })).toBe(0.1);
  });
});

describe("a limit without a 429", () => {
  test("recovers a tenth in 400 calls, and doubles every ten minutes after an hour, up to the maximum", () => {
    const at = (now: number, calls: number) => currentLearnedLimit(learnedAs({ calls }), BASIS, now);
    expect(at(0, 40)).toBe(40);
    expect(at(10 * MINUTE_MS, 40)).toBeCloseTo(40 / 0.9, 9);
    expect(at(HOUR_MS, 4)).toBeCloseTo(4 * 0.9 ** -0.6, 9);
    expect(at(HOUR_MS + 10 * MINUTE_MS, 4)).toBeCloseTo(8 * 0.9 ** -0.6, 9);
    expect(at(HOUR_MS + 25 * MINUTE_MS, 4)).toBeCloseTo(4 * 2 ** 2.5 * 0.9 ** -0.6, 9);
    expect(at(3 * HOUR_MS, 4)).toBe(80);
  });

  test("is forgotten at the first success after six hours", () => {
    const answered = (now: number, sentAt = now) => {
      const learned = learnedAs();
      learnFromAnswer(learned, sentAt, BASIS, now);
      return hasLearnedLimit(learned);
    };
    expect([answered(6 * HOUR_MS - 1), answered(6 * HOUR_MS), answered(6 * HOUR_MS, -1)]).toEqual([true, false, true]);
  });

  test("quickly returns to its value before 429s in a row", () => {
    const answered = (previousCalls: number) => {
      const learned = learnedAs({ calls: 10, previousCalls, hasSucceeded: false });
      learnFromAnswer(learned, 0, BASIS, 0);
      return [learned.calls, learned.hasSucceeded];
    };
    expect([answered(40), answered(15), answered(10), answered(0)]).toEqual([
      [20, true],
      [15, true],
      [10, true],
      [10, true],
    ]);
    const later = learnedAs({ calls: 10, previousCalls: 40 });
    learnFromAnswer(later, 5_000, BASIS, 6_000);
    expect(later.changedAt).toBe(6_000);
  });

  test("ignores successes of calls that were sent before the 429", () => {
    const learned = learnedAs({ changedAt: 1_000, hasSucceeded: false });
    learnFromAnswer(learned, 999, BASIS, 2_000);
    expect(learned.hasSucceeded).toBe(false);
    learnFromAnswer(learned, 1_000, BASIS, 2_000);
    expect(learned.hasSucceeded).toBe(true);
  });
});

test("under a learned limit calls are spaced evenly, and actions use at most half of them", () => {
  const learned = learnedAs({ calls: 10 });
  payLearnedLimit(learned, "walk", BASIS, 0);
  expect([learned.pace.paidUntil, learned.pace.actionsPaidUntil]).toEqual([6_000, NEVER]);
  payLearnedLimit(learned, "action", BASIS, 0);
  expect([learned.pace.paidUntil, learned.pace.actionsPaidUntil]).toEqual([12_000, 12_000]);
  learned.changedAt = 12_000;
  payLearnedLimit(learned, "action", BASIS, 12_000);
  expect([learned.pace.paidUntil, learned.pace.actionsPaidUntil]).toEqual([18_000, 24_000]);
  expect([learnedLimitAvailableAt(learned, "walk"), learnedLimitAvailableAt(learned, "action")]).toEqual([
    18_000, 24_000,
  ]);
  learned.pace.paidUntil = 30_000;
  expect(learnedLimitAvailableAt(learned, "action")).toBe(30_000);
});

describe("the limit of a gateway", () => {
  test("is unknown at first, so no call delays the next one", () => {
    const ledger = createLedger(limitsWithoutPlan("enterprise"), 0);
    payGatewayLimit(ledger, "node_management", "action", 0);
    expect(learnedLimitOf(ledger, "node_management", 0)).toBe(null);
    expect(gatewayAvailableAt(ledger, "node_management", "action")).toBe(NEVER);
    expect(ledger.gatewayPaidUntil).toBe(NEVER);
  });

  test("spaces the calls of all categories at the sum of their limits", () => {
    const ledger = createLedger(limitsWithoutPlan("enterprise"), 0);
    Object.assign(ledger.categories.node_management.learned, { calls: 10, changedAt: 0 });
    expect([learnedLimitOf(ledger, "node_management", 0), learnedLimitOf(ledger, "session_monitoring", 0)]).toEqual([
      10,
      null,
    ]);
    const spacing = MINUTE_MS / (10 + 400);
    payGatewayLimit(ledger, "session_monitoring", "walk", 0);
    expect(gatewayAvailableAt(ledger, "session_monitoring", "walk")).toBeCloseTo(spacing, 9);
    expect(gatewayAvailableAt(ledger, "node_management", "walk")).toBeCloseTo(spacing, 9);
    payGatewayLimit(ledger, "node_management", "walk", 1_000);
    expect(gatewayAvailableAt(ledger, "session_monitoring", "walk")).toBeCloseTo(1_000 + spacing, 1);
    expect(gatewayAvailableAt(ledger, "node_management", "walk")).toBeCloseTo(7_000, -1);
  });
});
