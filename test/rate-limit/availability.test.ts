import { describe, expect, test } from "vitest";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import type { ExternalUsageOfLimit } from "../../src/rate-limit/external-usage/usage-of-limit.ts";
import { createLedger, type Ledger } from "../../src/rate-limit/ledger.ts";
import type { Lane } from "../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import type { LimitReading } from "../../src/rate-limit/stated-limit.ts";
import { limitsWith, WINDOW_MS } from "./limited-service.ts";

/** A time after the first window of a process that started at 0. */
const LATER = 100_000;
const NEVER = Number.NEGATIVE_INFINITY;

/** Cost of a polling call at the even pace with a capacity of one. */
const COST_MS = WINDOW_MS / 79;
/** Cost of an action among actions, of which ten may be sent back to back. */
const ACTION_COST_MS = WINDOW_MS / 40;

const nodeAvailability = (ledger: Ledger, lane: Lane, now: number) =>
  availabilityOf(ledger, "node_management", lane, now);

/** Makes a call that is answered immediately. */
function answer(ledger: Ledger, now: number, reading: LimitReading | null): void {
  settlePermit(ledger, takePermit(ledger, "node_management", "walk", now), { kind: "answered", reading }, 0, now);
}

interface LedgerState {
  /** What the last response stated at `statedAt`; null: nothing. */
  readonly reading?: LimitReading | null;
  readonly statedAt?: number;
  /** Number of calls that each pace is ahead of `from`. */
  readonly ahead?: number;
  readonly actionsAhead?: number;
  readonly planAhead?: number;
  readonly planActionsAhead?: number;
  readonly from?: number;
  readonly requestsPerMinute?: number | null;
  readonly externalUsage?: Partial<ExternalUsageOfLimit>;
}

/** A ledger after one call, whose paces allow calls immediately unless set otherwise. */
function ledgerWith({ reading = null, statedAt = LATER, from = LATER, ...overrides }: LedgerState = {}): Ledger {
  const ledger = createLedger(limitsWith(overrides.requestsPerMinute), 0);
  answer(ledger, statedAt, reading);
  const state = ledger.categories.node_management;
  const paidUntil = (calls: number | undefined, costMs: number) =>
    calls === undefined ? NEVER : from + calls * costMs;
  state.pace.paidUntil = paidUntil(overrides.ahead, COST_MS);
  state.pace.actionsPaidUntil = paidUntil(overrides.actionsAhead, ACTION_COST_MS);
  ledger.planPace.paidUntil = paidUntil(overrides.planAhead, COST_MS);
  ledger.planPace.actionsPaidUntil = paidUntil(overrides.planActionsAhead, ACTION_COST_MS);
  Object.assign(ledger.externalUsage.node_management, overrides.externalUsage);
  return ledger;
}

const stated = (remaining: number, more: Partial<LimitReading> = {}): LimitReading => ({
  limit: 100,
  remaining,
  resetAt: null,
  ...more,
});

describe("a new process", () => {
  test("leaves concurrent calls for actions to those that the previous process abandoned, for a minute", () => {
    const { plan, ...limits } = limitsWith();
    const ledger = createLedger({ ...limits, plan: { ...plan, concurrentRequests: 10 } }, 0);
    answer(ledger, 5_000, stated(99));
    takePermit(ledger, "node_management", "walk", 10_000);
    // The service may still count nine calls of the previous process, one of them for an action.
    expect(nodeAvailability(ledger, "action", 30_000)).toEqual({ at: WINDOW_MS, waitReason: "concurrency" });
    expect(nodeAvailability(ledger, "action", WINDOW_MS).waitReason).toBeNull();
  });

  test("waits for the cost of its first call, and sends one call at a time until a response arrives", () => {
    const ledger = createLedger(limitsWith(), 0);
    expect(nodeAvailability(ledger, "walk", 0)).toEqual({ at: COST_MS, waitReason: "pace" });
    expect(nodeAvailability(ledger, "walk", 1_000)).toEqual({ at: 1_000, waitReason: null });
    takePermit(ledger, "node_management", "walk", 1_000);
    expect(nodeAvailability(ledger, "walk", 5_000)).toEqual({ at: Number.POSITIVE_INFINITY, waitReason: "learning" });
  });

  test("makes another call if the first one is lost", () => {
    const ledger = createLedger(limitsWith(), 0);
    settlePermit(ledger, takePermit(ledger, "node_management", "walk", 1_000), { kind: "lost" }, 0, 1_100);
    expect(nodeAvailability(ledger, "walk", 5_000)).toEqual({ at: 5_000, waitReason: null });
    takePermit(ledger, "node_management", "walk", 5_000);
    expect(nodeAvailability(ledger, "walk", 9_000).waitReason).toBe("learning");
    // A lost call is counted within a window, or never. From then on only the pace applies.
    expect(nodeAvailability(ledger, "walk", 61_100)).toEqual({ at: 61_100, waitReason: null });
  });
});

describe("without a stated limit", () => {
  test("polling keeps its pace", () => {
    expect(nodeAvailability(ledgerWith({ ahead: 0 }), "walk", LATER).waitReason).toBe(null);
    expect(nodeAvailability(ledgerWith({ ahead: 5 }), "walk", LATER)).toEqual({
      at: LATER + 5 * COST_MS,
      waitReason: "pace",
    });
  });

  test("actions may exceed the pace by the reserve, but not in the first window of a process", () => {
    expect(nodeAvailability(ledgerWith({ ahead: 10 }), "action", LATER).waitReason).toBe(null);
    expect(nodeAvailability(ledgerWith({ ahead: 10.5 }), "action", LATER).at).toBeCloseTo(LATER + 0.5 * COST_MS, 6);
    const first = (from: number) =>
      nodeAvailability(ledgerWith({ statedAt: 10_000, from, ahead: 5 }), "action", from).waitReason;
    expect([first(WINDOW_MS - 1), first(WINDOW_MS)]).toEqual(["pace", null]);
  });

  test("actions keep a pace among themselves", () => {
    expect(nodeAvailability(ledgerWith({ actionsAhead: 9 }), "action", LATER).waitReason).toBe(null);
    expect(nodeAvailability(ledgerWith({ actionsAhead: 12 }), "action", LATER)).toEqual({
      at: LATER + 3 * ACTION_COST_MS,
      waitReason: "pace",
    });
    expect(nodeAvailability(ledgerWith({ actionsAhead: 12 }), "walk", LATER).waitReason).toBe(null);
    expect(nodeAvailability(ledgerWith({ ahead: 30, actionsAhead: 12 }), "action", LATER).at).toBeCloseTo(
      LATER + 20 * COST_MS,
      6,
    );
  });
});

describe("with a stated limit", () => {
  const hold = (overrides: LedgerState, lane: Lane = "walk", now = LATER) =>
    nodeAvailability(ledgerWith(overrides), lane, now).waitReason;

  test("calls that a bucket saved beyond the limit may be sent together, and ten more for actions", () => {
    const reading = stated(180);
    expect([hold({ reading, ahead: 79 }), hold({ reading, ahead: 79.5 })]).toEqual([null, "pace"]);
    expect([hold({ reading, ahead: 88.9 }, "action"), hold({ reading, ahead: 89.1 }, "action")]).toEqual([
      null,
      "pace",
    ]);
    // Calls beyond the burst don't count.
    expect([hold({ reading: stated(400), ahead: 98.9 }), hold({ reading: stated(400), ahead: 99.1 })]).toEqual([
      ...[null, "pace"],
    ]);
  });

  test("a quarter of the polling calls may be sent together, but not in the first window or with external usage", () => {
    const reading = stated(90);
    expect([hold({ reading, ahead: 19 }), hold({ reading, ahead: 19.5 })]).toEqual([null, "pace"]);
    const first = { reading, statedAt: 10_000, from: 20_000 };
    expect([hold({ ...first, ahead: 0 }, "walk", 20_000), hold({ ...first, ahead: 1 }, "walk", 20_000)]).toEqual([
      ...[null, "pace"],
    ]);
    const crowded = { reading, externalUsage: { expectedCalls: () => 1 } };
    expect([hold({ ...crowded, ahead: 0 }), hold({ ...crowded, ahead: 1 })]).toEqual([null, "pace"]);
  });

  test("the statement applies for a window, after which one call is sent to learn the limit", () => {
    const reading = stated(90);
    const aged = (ms: number) => hold({ reading, statedAt: LATER - ms, ahead: 5 });
    expect([aged(WINDOW_MS), aged(WINDOW_MS + 1)]).toEqual([null, "pace"]);
    const ledger = ledgerWith({ reading, statedAt: LATER - WINDOW_MS });
    takePermit(ledger, "node_management", "walk", LATER);
    ledger.categories.node_management.pace.paidUntil = NEVER;
    expect(nodeAvailability(ledger, "walk", LATER).waitReason).toBe(null);
    expect(nodeAvailability(ledger, "walk", LATER + 1)).toEqual({
      at: Number.POSITIVE_INFINITY,
      waitReason: "learning",
    });
  });

  test("a limit above the category's allows no burst", () => {
    expect(hold({ reading: stated(490, { limit: 500 }), ahead: 5 })).toBe("pace");
    expect(hold({ reading: stated(90, { limit: 101 }), ahead: 5 })).toBe("pace");
  });

  test("polling leaves the reserve and waits for the reset, and actions may use half of it", () => {
    const left = (remaining: number, lane: Lane, more: Partial<LimitReading> = {}) =>
      nodeAvailability(ledgerWith({ reading: stated(remaining, more) }), lane, LATER);
    const resetAt = LATER + 30_000;
    expect(left(21, "walk", { resetAt }).waitReason).toBe(null);
    expect(left(20, "walk", { resetAt })).toEqual({ at: resetAt, waitReason: "remaining" });
    expect(left(20, "walk")).toEqual({ at: LATER + 61_000, waitReason: "remaining" });
    expect(left(20, "walk", { resetAt: LATER + 900_000 }).at).toBe(LATER + 61_000);
    expect(left(11, "action", { resetAt }).waitReason).toBe(null);
    expect(left(10, "action", { resetAt })).toEqual({ at: resetAt, waitReason: "remaining" });
    // A smaller limit has a smaller reserve.
    expect(left(11, "walk", { resetAt, limit: 50 }).waitReason).toBe(null);
    expect(left(10, "walk", { resetAt, limit: 50 }).waitReason).toBe("remaining");
  });

  test("if almost nothing remains, polling waits for a window, regardless of the reset", () => {
    const left = (remaining: number) =>
      nodeAvailability(ledgerWith({ reading: stated(remaining, { resetAt: LATER + 30_000 }) }), "walk", LATER).at;
    expect([left(2), left(3)]).toEqual([LATER + 61_000, LATER + 30_000]);
  });

  test("after the reset one call is sent to learn the limit", () => {
    const ledger = ledgerWith({ reading: stated(20, { resetAt: LATER + 30_000 }) });
    expect(nodeAvailability(ledger, "walk", LATER + 30_000).waitReason).toBe(null);
    takePermit(ledger, "node_management", "walk", LATER + 30_000);
    ledger.categories.node_management.pace.paidUntil = NEVER;
    expect(nodeAvailability(ledger, "walk", LATER + 30_001).waitReason).toBe("learning");
  });
});

describe("with external usage", () => {
  /** 50 expected external calls per window, of which `used` were made in this one. */
  const crowded = (remaining: number, used = 0, isBucket = false): LedgerState => ({
    reading: stated(remaining, { resetAt: LATER + 30_000 }),
    externalUsage: {
      expectedCalls: () => 50,
      callsInWindow: () => used,
      isTokenBucket: () => isBucket,
      ownCallsFewerThan: () => NEVER,
      lastOwnCallAt: () => NEVER,
    },
  });
  const of = (overrides: LedgerState, lane: Lane = "walk", now = LATER) =>
    nodeAvailability(ledgerWith(overrides), lane, now);

  test("polling leaves the expected calls, less those already made in this window", () => {
    expect([of(crowded(51)).waitReason, of(crowded(50)).waitReason]).toEqual([null, "remaining"]);
    expect([of(crowded(19, 30)).waitReason, of(crowded(18, 30)).waitReason]).toEqual([null, "remaining"]);
    expect([of(crowded(3, 60)).waitReason, of(crowded(2, 60)).waitReason]).toEqual([null, "remaining"]);
    expect([of(crowded(11), "action").waitReason, of(crowded(10), "action").waitReason]).toEqual([null, "remaining"]);
  });

  test("polling leaves only the reserve of a token bucket", () => {
    expect([of(crowded(21, 0, true)).waitReason, of(crowded(20, 0, true)).waitReason]).toEqual([null, "remaining"]);
  });

  test("polling sends a call now and then to find out whether others still need theirs", () => {
    expect(of(crowded(40))).toEqual({ at: LATER + 5_000, waitReason: "remaining" });
    expect(of(crowded(40), "walk", LATER + 12_000)).toEqual({ at: LATER + 15_000, waitReason: "remaining" });
    expect(of(crowded(40), "walk", LATER + 15_000).waitReason).toBe(null);
  });

  test("polling waits for capacity, and checks again every twelfth of a window", () => {
    const waiting = (at: number): LedgerState => ({
      externalUsage: { expectedCalls: () => 50, ownCallsFewerThan: () => at, lastOwnCallAt: () => NEVER },
    });
    expect(of(waiting(LATER + 3_000))).toEqual({ at: LATER + 3_000, waitReason: "external_usage" });
    expect(of(waiting(LATER + 8_000))).toEqual({ at: LATER + 5_000, waitReason: "external_usage" });
    expect(of({ ...waiting(LATER + 8_000), ahead: 15 })).toEqual({ at: LATER + 15 * COST_MS, waitReason: "pace" });
  });
});

describe("under a plan of 100 calls per minute", () => {
  const of = (overrides: LedgerState, lane: Lane, now = LATER) =>
    nodeAvailability(ledgerWith({ ...overrides, requestsPerMinute: 100 }), lane, now);

  test("all categories together keep its pace", () => {
    expect(of({ planAhead: 5 }, "walk")).toEqual({ at: LATER + 5 * COST_MS, waitReason: "plan" });
    expect(of({ planAhead: 0 }, "walk").waitReason).toBe(null);
  });

  test("actions may exceed the pace by the reserve, but not in the first minute of a process", () => {
    expect([of({ planAhead: 10 }, "action").waitReason, of({ planAhead: 10.5 }, "action").waitReason]).toEqual([
      null,
      "plan",
    ]);
    const first = { statedAt: 10_000, from: 20_000, planAhead: 5 };
    expect(of(first, "action", 20_000).waitReason).toBe("plan");
  });

  test("actions keep a pace among themselves", () => {
    expect(of({ planActionsAhead: 12 }, "action")).toEqual({ at: LATER + 3 * ACTION_COST_MS, waitReason: "plan" });
    expect(of({ planActionsAhead: 12 }, "walk").waitReason).toBe(null);
    expect(of({ planAhead: 30, planActionsAhead: 12 }, "action").at).toBeCloseTo(LATER + 20 * COST_MS, 6);
  });
});
