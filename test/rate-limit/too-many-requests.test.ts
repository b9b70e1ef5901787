import { describe, expect, test } from "vitest";
import { hasLearnedLimit } from "../../src/rate-limit/learned-limit.ts";
import { createLedger, type Ledger } from "../../src/rate-limit/ledger.ts";
import type { Category, Lane, Limits } from "../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import type { LimitReading } from "../../src/rate-limit/stated-limit.ts";
import { endHolds, headersExplainRejection, heldUntil } from "../../src/rate-limit/too-many-requests.ts";

const WINDOW_MS = 60_000;
/** Cost of an action of the node category among actions, of which ten may be sent back to back. */
const ACTION_COST_MS = 1_500;

const limits: Limits = {
  categories: {
    node_management: { requests: 100, burst: 200, windowMs: WINDOW_MS },
    session_monitoring: { requests: 600, burst: 600, windowMs: WINDOW_MS },
  },
  plan: { requestsPerMinute: 500, concurrentRequests: 50, callsPerMonth: 1_000_000 },
  reserve: 0.2,
};
const start = () => createLedger(limits, 0);
const usedUp = (limit: number): LimitReading => ({ limit, remaining: 0, resetAt: null });

interface RejectionOptions {
  readonly category?: Category;
  readonly lane?: Lane;
  readonly reading?: LimitReading | null;
  readonly retryAfterMs?: number | null;
}

/** Makes a call that gets 429 immediately, with the maximum backoff. */
function reject(ledger: Ledger, now: number, options: RejectionOptions = {}): void {
  const { category = "node_management", lane = "walk", reading = null, retryAfterMs = null } = options;
  settlePermit(
    ledger,
    takePermit(ledger, category, lane, now),
    { kind: "rate_limited", reading, retryAfterMs },
    1,
    now,
  );
}

function answer(ledger: Ledger, now: number, lane: Lane = "walk", reading: LimitReading | null = null): void {
  settlePermit(ledger, takePermit(ledger, "node_management", lane, now), { kind: "answered", reading }, 1, now);
}

const untilOf = (ledger: Ledger, lane: Lane = "walk", category: Category = "node_management") =>
  heldUntil(ledger, category, lane);

describe("headers explain a 429", () => {
  test("if nothing remains of a configured limit", () => {
    const explained = (limit: number) => headersExplainRejection(start(), "node_management", usedUp(limit));
    expect([100, 500, 50, 1_000_000].map(explained)).toEqual([true, true, true, true]);
    expect([77, 600].map(explained)).toEqual([false, false]);
  });

  test("if nothing remains of a limit that was stated before", () => {
    const ledger = start();
    answer(ledger, 1_000, "walk", { limit: 77, remaining: 70, resetAt: null });
    expect(headersExplainRejection(ledger, "node_management", usedUp(77))).toBe(true);
    expect(headersExplainRejection(ledger, "session_monitoring", usedUp(77))).toBe(false);
  });

  test("not if only a 429 stated the limit, and the calls that succeed do not", () => {
    const ledger = start();
    reject(ledger, 1_000, { reading: usedUp(77) });
    answer(ledger, 62_000);
    expect(headersExplainRejection(ledger, "node_management", usedUp(77))).toBe(false);
  });

  test("not if calls remain, or if there are no headers", () => {
    const reading = { limit: 100, remaining: 1, resetAt: null };
    expect(headersExplainRejection(start(), "node_management", reading)).toBe(false);
    expect(headersExplainRejection(start(), "node_management", null)).toBe(false);
  });
});

describe("a 429 that headers explain", () => {
  const held = (reading: LimitReading) => {
    const ledger = start();
    reject(ledger, 10_000, { reading, retryAfterMs: 20_000 });
    return ledger;
  };

  test("holds its category, after which one action is sent immediately, and the others are spaced", () => {
    const ledger = held(usedUp(100));
    expect([untilOf(ledger), untilOf(ledger, "walk", "session_monitoring")]).toEqual([
      31_000,
      Number.NEGATIVE_INFINITY,
    ]);
    const { pace, learned } = ledger.categories.node_management;
    expect(pace.actionsPaidUntil).toBe(31_000 + 9 * ACTION_COST_MS);
    expect(hasLearnedLimit(learned)).toBe(false);
  });

  test("holds both categories if it states the plan's limit", () => {
    const ledger = held(usedUp(500));
    expect([untilOf(ledger), untilOf(ledger, "walk", "session_monitoring")]).toEqual([31_000, 31_000]);
  });

  test("is not shortened by a later one with a shorter Retry-After", () => {
    const ledger = held(usedUp(100));
    reject(ledger, 11_000, { reading: usedUp(100), retryAfterMs: 1_000 });
    expect(untilOf(ledger)).toBe(31_000);
  });
});

test("a 429 with a long Retry-After holds calls for six hours", () => {
  const ledger = start();
  reject(ledger, 10_000, { reading: usedUp(1_000_000), retryAfterMs: 20 * 24 * 3_600_000 });
  for (const lane of ["walk", "action"] as const) expect(untilOf(ledger, lane)).toBe(10_000 + 6 * 3_600_000);
});

test.each([
  ["a limit per minute", usedUp(100)],
  ["no limit", null],
])("a 429 that states %s and a long Retry-After holds the other routes for five minutes only", (_stated, reading) => {
  for (const lane of ["walk", "action"] as const) {
    const ledger = start();
    reject(ledger, 10_000, { lane, reading, retryAfterMs: 24 * 3_600_000 });
    const other = lane === "walk" ? "action" : "walk";
    const { pace } = ledger.categories.node_management;
    expect(untilOf(ledger, lane)).toBe(10_000 + 6 * 3_600_000);
    expect(untilOf(ledger, other)).toBe(310_000);
    if (other === "action") expect(pace.actionsPaidUntil).toBe(310_000 + 9 * ACTION_COST_MS);
  }
});

test.each([
  ["category", usedUp(100)],
  ["plan", usedUp(1_000_000)],
  ["route", null],
] as const)("endHolds ends the hold of a %s within a window", (_held, reading) => {
  const ledger = start();
  for (const lane of ["walk", "action"] as const) reject(ledger, 10_000, { lane, reading, retryAfterMs: 3_600_000 });
  const now = 20_000;
  endHolds(ledger, now);
  for (const lane of ["walk", "action"] as const) {
    for (const category of ["node_management", "session_monitoring"] as const)
      expect(untilOf(ledger, lane, category)).toBeLessThanOrEqual(now + WINDOW_MS);
    const { paidUntil, actionsPaidUntil } = ledger.categories.node_management.pace;
    expect(Math.max(paidUntil, actionsPaidUntil)).toBeLessThanOrEqual(now + WINDOW_MS);
  }
});

describe("a 429 that headers do not explain", () => {
  test("holds both categories and teaches a limit", () => {
    const ledger = start();
    reject(ledger, 10_000, { retryAfterMs: 20_000 });
    expect([untilOf(ledger), untilOf(ledger, "walk", "session_monitoring")]).toEqual([31_000, 31_000]);
    const { node_management, session_monitoring } = ledger.categories;
    expect(node_management.pace.actionsPaidUntil).toBe(31_000 + 9 * ACTION_COST_MS);
    expect([hasLearnedLimit(node_management.learned), hasLearnedLimit(session_monitoring.learned)]).toEqual([
      true,
      false,
    ]);
    expect(node_management.learned.calls).toBe(72);
  });

  test("holds its category for at most five minutes, and its route for the requested time", () => {
    const ledger = start();
    reject(ledger, 10_000, { retryAfterMs: 3_600_000 });
    expect([untilOf(ledger), untilOf(ledger, "detail")]).toEqual([3_611_000, 310_000]);
  });

  test("leaves the category available after a hold for as long, but not for actions if it was one", () => {
    const secondHold = (now: number, lane: Lane) => {
      const ledger = start();
      reject(ledger, 10_000);
      reject(ledger, now, { lane });
      const { uncertainHold, pace } = ledger.categories.node_management;
      return {
        since: uncertainHold.at,
        until: uncertainHold.until,
        actionsFrom: pace.actionsPaidUntil - 9 * ACTION_COST_MS,
      };
    };
    expect(secondHold(10_500, "detail")).toEqual({ since: 10_000, until: 12_500, actionsFrom: 12_500 });
    expect(secondHold(11_999, "detail")).toEqual({ since: 10_000, until: 11_000, actionsFrom: 11_000 });
    expect(secondHold(11_999, "action")).toEqual({ since: 10_000, until: 11_000, actionsFrom: 13_999 });
    expect(secondHold(12_000, "detail")).toEqual({ since: 12_000, until: 14_000, actionsFrom: 14_000 });
  });

  test("concerns only its route if the others succeed as often", () => {
    const ledger = start();
    for (let call = 0; call < 20; call++) answer(ledger, 1_000 + call, "detail");
    for (const now of [100_000, 200_000]) reject(ledger, now);
    const { calls } = ledger.categories.node_management.learned;
    reject(ledger, 300_000, { retryAfterMs: 60_000 });
    expect([untilOf(ledger), untilOf(ledger, "detail")]).toEqual([361_000, 202_000]);
    expect(ledger.categories.node_management.learned.calls).toBe(calls);
  });

  test("holds all routes if the others get 429 as well", () => {
    const ledger = start();
    for (let call = 0; call < 20; call++) reject(ledger, 1_000 + call * 10_000, { lane: "detail" });
    for (const now of [1_000_000, 2_000_000]) reject(ledger, now);
    reject(ledger, 3_000_000);
    expect(untilOf(ledger, "detail")).toBe(3_300_000);
  });
});

describe("a response", () => {
  test("to a call sent after the last 429 resets the count of 429s in a row", () => {
    const rejections = (sentAt: number) => {
      const ledger = start();
      const permit = takePermit(ledger, "node_management", "walk", sentAt);
      reject(ledger, 10_000);
      settlePermit(ledger, permit, { kind: "answered", reading: null }, 0, 20_000);
      const { rejections: ofAll, routes } = ledger.categories.node_management;
      return [ofAll, routes.walk.rejectionsInRow];
    };
    expect([rejections(9_999), rejections(10_000)]).toEqual([
      [1, 1],
      [0, 0],
    ]);
  });

  test("of an overloaded service holds its category", () => {
    const ledger = start();
    const permit = takePermit(ledger, "node_management", "walk", 10_000);
    settlePermit(ledger, permit, { kind: "answered", reading: null, retryAfterMs: 60_000 }, 0, 10_000);
    expect(untilOf(ledger)).toBe(71_000);
    expect(untilOf(ledger, "walk", "session_monitoring")).toBe(Number.NEGATIVE_INFINITY);
  });

  test("without Retry-After holds nothing", () => {
    const ledger = start();
    answer(ledger, 10_000);
    expect(untilOf(ledger)).toBe(Number.NEGATIVE_INFINITY);
    expect(ledger.categories.node_management).toMatchObject({ lastTriedAt: 10_000, answeredAt: 10_000 });
  });
});
