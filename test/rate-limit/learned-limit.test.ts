import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { gatewayAvailableAt, learnedLimitOf, payGatewayLimit } from "../../src/rate-limit/gateway-limit.ts";
import {
  createLearnedLimit,
  currentLearnedLimit,
  hasLearnedLimit,
  type LearnedLimit,
  learnedLimitAvailableAt,
  learnFromAnswer,
  learnFromRejection,
  payLearnedLimit,
} from "../../src/rate-limit/learned-limit.ts";
import { createLedger } from "../../src/rate-limit/ledger.ts";
import { limitsWithoutPlan } from "./limited-service.ts";

const CEILING = { maximum: 80, windowMs: MINUTE_MS };
const NEVER = Number.NEGATIVE_INFINITY;

/** A limit of 40 calls a minute, learned at 0, and a call was answered since, but for what is said of it. */
const learnedAs = (said: Partial<LearnedLimit> = {}): LearnedLimit => ({
  ...createLearnedLimit(),
  calls: 40,
  decreasedAt: 0,
  ...said,
});

/** The limit after a refusal, in calls a minute. */
function afterRefusal(
  learned: LearnedLimit,
  { now = 0, sentAt = now, made = 100, othersAnsweredAt = NEVER }: Partial<Record<string, number>> = {},
): number {
  learnFromRejection(learned, { sentAt, callsMade: made, othersAnsweredAt: othersAnsweredAt }, CEILING, now);
  return learned.calls;
}

test("where nothing was learned there is no limit, and no call pays or waits", () => {
  const learned = createLearnedLimit();
  payLearnedLimit(learned, "action", CEILING, 0);
  expect(hasLearnedLimit(learned)).toBe(false);
  expect(currentLearnedLimit(learned, CEILING, 0)).toBe(Number.POSITIVE_INFINITY);
  expect([learned.pace.paidUntil, learned.actions.paidUntil]).toEqual([NEVER, NEVER]);
  expect([learnedLimitAvailableAt(learned, "walk"), learnedLimitAvailableAt(learned, "action")]).toEqual([
    NEVER,
    NEVER,
  ]);
});

describe("a refusal", () => {
  test("first takes a tenth off what is called at most, however few calls were made", () => {
    const learned = createLearnedLimit();
    expect(afterRefusal(learned, { now: 1_000, made: 10 })).toBe(72);
    expect(learned).toMatchObject({ decreasedAt: 1_000, hasSucceeded: false, previousCalls: 0 });
  });

  test("then takes a tenth off what was called, but no more than half of the limit", () => {
    const limits = [100, 40, 30, 10].map((made) => afterRefusal(learnedAs(), { made }));
    expect(limits).toEqual([36, 36, 27, 20]);
  });

  test("counts once for calls that were under way together", () => {
    expect(afterRefusal(learnedAs({ decreasedAt: 1_000 }), { now: 2_000, sentAt: 999 })).toBe(40);
    expect(afterRefusal(learnedAs({ decreasedAt: 1_000 }), { now: 1_000, sentAt: 1_000 })).toBe(36);
  });

  test("of calls in a row counts only where another category is answered meanwhile, and halves the limit", () => {
    const unanswered = (said: Partial<LearnedLimit> = {}) => learnedAs({ hasSucceeded: false, ...said });
    expect(afterRefusal(unanswered(), { othersAnsweredAt: 0 })).toBe(40);
    const learned = unanswered();
    expect(afterRefusal(learned, { othersAnsweredAt: 1 })).toBe(20);
    expect(learned.previousCalls).toBe(40);
    expect(afterRefusal(learned, { othersAnsweredAt: 1 })).toBe(10);
    expect(learned.previousCalls).toBe(40);
    expect(afterRefusal(unanswered({ calls: 1.5 }), { othersAnsweredAt: 1 })).toBe(1);
    expect(afterRefusal(unanswered({ calls: 0.5 }), { othersAnsweredAt: 1 })).toBe(0.5);
  });

  test("after an answer makes the limit before refusals in a row obsolete", () => {
    const learned = learnedAs({ previousCalls: 50 });
    afterRefusal(learned);
    expect(learned.previousCalls).toBe(0);
  });

  test("after an hour without one takes back what was only tried, and no more than a tenth", () => {
    const of = (now: number, made = 3) => afterRefusal(learnedAs({ calls: 4 }), { now, made });
    const proven = 4 * 0.9 ** -0.6;
    expect(of(HOUR_MS)).toBeCloseTo(2.7, 9);
    expect(of(HOUR_MS + 1)).toBeCloseTo(proven * 0.9, 3);
    expect(of(HOUR_MS + 20 * MINUTE_MS)).toBeCloseTo(proven, 9);
  });

  test("leaves a call in ten minutes", () => {
    expect(afterRefusal(learnedAs({ calls: 0.1 }), { made: 0 })).toBe(0.1);
  });
});

describe("a limit without a refusal", () => {
  test("gives a tenth back in 400 calls, and doubles every ten minutes after an hour, up to what is called at most", () => {
    const at = (now: number, calls: number) => currentLearnedLimit(learnedAs({ calls }), CEILING, now);
    expect(at(0, 40)).toBe(40);
    expect(at(10 * MINUTE_MS, 40)).toBeCloseTo(40 / 0.9, 9);
    expect(at(HOUR_MS, 4)).toBeCloseTo(4 * 0.9 ** -0.6, 9);
    expect(at(HOUR_MS + 10 * MINUTE_MS, 4)).toBeCloseTo(8 * 0.9 ** -0.6, 9);
    expect(at(HOUR_MS + 25 * MINUTE_MS, 4)).toBeCloseTo(4 * 2 ** 2.5 * 0.9 ** -0.6, 9);
    expect(at(3 * HOUR_MS, 4)).toBe(80);
  });

  test("is forgotten after six hours, at an answer", () => {
    const answered = (now: number, sentAt = now) => {
      const learned = learnedAs();
      learnFromAnswer(learned, sentAt, CEILING, now);
      return hasLearnedLimit(learned);
    };
    expect([answered(6 * HOUR_MS - 1), answered(6 * HOUR_MS), answered(6 * HOUR_MS, -1)]).toEqual([true, false, true]);
  });

  test("comes back fast to what it was before refusals in a row", () => {
    const answered = (formerly: number) => {
      const learned = learnedAs({ calls: 10, previousCalls: formerly, hasSucceeded: false });
      learnFromAnswer(learned, 0, CEILING, 0);
      return [learned.calls, learned.hasSucceeded];
    };
    expect([answered(40), answered(15), answered(10), answered(0)]).toEqual([
      [20, true],
      [15, true],
      [10, true],
      [10, true],
    ]);
    const later = learnedAs({ calls: 10, previousCalls: 40 });
    learnFromAnswer(later, 5_000, CEILING, 6_000);
    expect(later.decreasedAt).toBe(6_000);
  });

  test("takes no answer to a call from before the refusal for one", () => {
    const learned = learnedAs({ decreasedAt: 1_000, hasSucceeded: false });
    learnFromAnswer(learned, 999, CEILING, 2_000);
    expect(learned.hasSucceeded).toBe(false);
    learnFromAnswer(learned, 1_000, CEILING, 2_000);
    expect(learned.hasSucceeded).toBe(true);
  });
});

test("under a learned limit calls come evenly, and actions take half of them at most", () => {
  const learned = learnedAs({ calls: 10 });
  payLearnedLimit(learned, "walk", CEILING, 0);
  expect([learned.pace.paidUntil, learned.actions.paidUntil]).toEqual([6_000, NEVER]);
  payLearnedLimit(learned, "action", CEILING, 0);
  expect([learned.pace.paidUntil, learned.actions.paidUntil]).toEqual([12_000, 12_000]);
  learned.decreasedAt = 12_000;
  payLearnedLimit(learned, "action", CEILING, 12_000);
  expect([learned.pace.paidUntil, learned.actions.paidUntil]).toEqual([18_000, 24_000]);
  expect([learnedLimitAvailableAt(learned, "walk"), learnedLimitAvailableAt(learned, "action")]).toEqual([
    18_000, 24_000,
  ]);
  learned.pace.paidUntil = 30_000;
  expect(learnedLimitAvailableAt(learned, "action")).toBe(30_000);
});

describe("something in front of the service that limits calls", () => {
  test("is unknown at first: no call pays for it", () => {
    const ledger = createLedger(limitsWithoutPlan("enterprise"), 0, 0);
    payGatewayLimit(ledger, "node_management", "action", 0);
    expect(learnedLimitOf(ledger, "node_management", 0)).toBe(null);
    expect(gatewayAvailableAt(ledger, "node_management", "action")).toBe(NEVER);
    expect(ledger.gatewayPace.paidUntil).toBe(NEVER);
  });

  test("spaces the calls of all categories, at the sum of what each of them may make", () => {
    const ledger = createLedger(limitsWithoutPlan("enterprise"), 0, 0);
    Object.assign(ledger.categories.node_management.learned, { calls: 10, decreasedAt: 0 });
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
