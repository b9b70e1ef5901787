import { describe, expect, test } from "vitest";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import type { ExternalUsageOfLimit } from "../../src/rate-limit/external-usage/usage-of-limit.ts";
import { createLedger, type Ledger } from "../../src/rate-limit/ledger.ts";
import type { LimitReading } from "../../src/rate-limit/limit-headers.ts";
import type { Lane, Limits } from "../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../src/rate-limit/permits.ts";

const WINDOW_MS = 60_000;
/** Past the first window of a process that began at 0. */
const LATER = 100_000;
const NEVER = Number.NEGATIVE_INFINITY;

/** Polling may make 80 calls a window, keeps 20, and actions may use 10 of those. */
const limitsWith = (requestsPerMinute: number | null = null): Limits => ({
  categories: {
    node_management: { requests: 100, burst: 200, windowMs: WINDOW_MS },
    session_monitoring: { requests: 500, burst: 500, windowMs: WINDOW_MS },
  },
  plan: { requestsPerMinute, concurrentRequests: null, callsPerMonth: null },
  reserve: 0.2,
});
/** What one call of polling costs at an even pace, of which one goes back to back. */
const COST_MS = WINDOW_MS / 79;
/** What one action costs among actions, of which ten go back to back. */
const ACTION_COST_MS = WINDOW_MS / 40;

const openingOf = (ledger: Ledger, lane: Lane, now: number) => availabilityOf(ledger, "node_management", lane, now);

/** A call that is answered at once. */
function answer(ledger: Ledger, now: number, reading: LimitReading | null): void {
  settlePermit(ledger, takePermit(ledger, "node_management", "walk", now), { kind: "answered", reading }, 0, now);
}

interface Said {
  /** What the last answer stated, at `statedAt`; null: nothing. */
  readonly reading?: LimitReading | null;
  readonly statedAt?: number;
  /** Calls by which the paces of polling and of actions, and those of the plan, are ahead of `LATER`. */
  readonly ahead?: number;
  readonly actionsAhead?: number;
  readonly planAhead?: number;
  readonly planActionsAhead?: number;
  readonly from?: number;
  readonly requestsPerMinute?: number | null;
  readonly others?: Partial<ExternalUsageOfLimit>;
}

/** A ledger of one answered call, whose paces leave room but for what is said. */
function ledgerWith({ reading = null, statedAt = LATER, from = LATER, ...said }: Said = {}): Ledger {
  const ledger = createLedger(limitsWith(said.requestsPerMinute), 0, 0);
  answer(ledger, statedAt, reading);
  const account = ledger.categories.node_management;
  const paidAt = (calls: number | undefined, costMs: number) => (calls === undefined ? NEVER : from + calls * costMs);
  account.pace.paidUntil = paidAt(said.ahead, COST_MS);
  account.actions.paidUntil = paidAt(said.actionsAhead, ACTION_COST_MS);
  ledger.plan.paidUntil = paidAt(said.planAhead, COST_MS);
  ledger.planActions.paidUntil = paidAt(said.planActionsAhead, ACTION_COST_MS);
  Object.assign(ledger.externalUsage.node_management, said.others);
  return ledger;
}

const state = (remaining: number, more: Partial<LimitReading> = {}): LimitReading => ({
  ...{ limit: 100, remaining, resetAt: null },
  ...more,
});

describe("a process that begins", () => {
  test("waits for the cost of its first call, and has one under way until an answer tells more", () => {
    const ledger = createLedger(limitsWith(), 0, 0);
    expect(openingOf(ledger, "walk", 0)).toEqual({ at: COST_MS, waitReason: "pace" });
    expect(openingOf(ledger, "walk", 1_000)).toEqual({ at: 1_000, waitReason: null });
    takePermit(ledger, "node_management", "walk", 1_000);
    expect(openingOf(ledger, "walk", 5_000)).toEqual({ at: Number.POSITIVE_INFINITY, waitReason: "learning" });
  });

  test("makes another call where the first one is lost", () => {
    const ledger = createLedger(limitsWith(), 0, 0);
    settlePermit(ledger, takePermit(ledger, "node_management", "walk", 1_000), { kind: "lost" }, 0, 1_100);
    expect(openingOf(ledger, "walk", 5_000)).toEqual({ at: 5_000, waitReason: null });
    takePermit(ledger, "node_management", "walk", 5_000);
    expect(openingOf(ledger, "walk", 9_000).waitReason).toBe("learning");
    // What is lost has been counted a window later, or never: from then on the pace alone rules.
    expect(openingOf(ledger, "walk", 61_100)).toEqual({ at: 61_100, waitReason: null });
  });
});

describe("where answers state nothing", () => {
  test("polling keeps to its pace", () => {
    expect(openingOf(ledgerWith({ ahead: 0 }), "walk", LATER).waitReason).toBe(null);
    expect(openingOf(ledgerWith({ ahead: 5 }), "walk", LATER)).toEqual({ at: LATER + 5 * COST_MS, waitReason: "pace" });
  });

  test("actions run ahead of it into the reserve, but not in the first window of a process", () => {
    expect(openingOf(ledgerWith({ ahead: 10 }), "action", LATER).waitReason).toBe(null);
    expect(openingOf(ledgerWith({ ahead: 10.5 }), "action", LATER).at).toBeCloseTo(LATER + 0.5 * COST_MS, 6);
    const first = (from: number) =>
      openingOf(ledgerWith({ statedAt: 10_000, from, ahead: 5 }), "action", from).waitReason;
    expect([first(WINDOW_MS - 1), first(WINDOW_MS)]).toEqual(["pace", null]);
  });

  test("actions keep to a pace among themselves", () => {
    expect(openingOf(ledgerWith({ actionsAhead: 9 }), "action", LATER).waitReason).toBe(null);
    expect(openingOf(ledgerWith({ actionsAhead: 12 }), "action", LATER)).toEqual({
      ...{ at: LATER + 3 * ACTION_COST_MS, waitReason: "pace" },
    });
    expect(openingOf(ledgerWith({ actionsAhead: 12 }), "walk", LATER).waitReason).toBe(null);
    expect(openingOf(ledgerWith({ ahead: 30, actionsAhead: 12 }), "action", LATER).at).toBeCloseTo(
      LATER + 20 * COST_MS,
      6,
    );
  });
});

describe("where the last answer stated the limit", () => {
  const hold = (said: Said, lane: Lane = "walk", now = LATER) => openingOf(ledgerWith(said), lane, now).waitReason;

  test("what a bucket saved up beyond the limit goes at once, and ten more for actions", () => {
    const reading = state(180);
    expect([hold({ reading, ahead: 79 }), hold({ reading, ahead: 79.5 })]).toEqual([null, "pace"]);
    expect([hold({ reading, ahead: 88.9 }, "action"), hold({ reading, ahead: 89.1 }, "action")]).toEqual([
      null,
      "pace",
    ]);
    // More than the burst is no burst.
    expect([hold({ reading: state(400), ahead: 98.9 }), hold({ reading: state(400), ahead: 99.1 })]).toEqual([
      ...[null, "pace"],
    ]);
  });

  test("a quarter of what polling may spend goes at once, but not in the first window, nor where others are about", () => {
    const reading = state(90);
    expect([hold({ reading, ahead: 19 }), hold({ reading, ahead: 19.5 })]).toEqual([null, "pace"]);
    const first = { reading, statedAt: 10_000, from: 20_000 };
    expect([hold({ ...first, ahead: 0 }, "walk", 20_000), hold({ ...first, ahead: 1 }, "walk", 20_000)]).toEqual([
      ...[null, "pace"],
    ]);
    const crowded = { reading, others: { expectedCalls: () => 1 } };
    expect([hold({ ...crowded, ahead: 0 }), hold({ ...crowded, ahead: 1 })]).toEqual([null, "pace"]);
  });

  test("it leads for a window, and then one call learns anew", () => {
    const reading = state(90);
    const aged = (ms: number) => hold({ reading, statedAt: LATER - ms, ahead: 5 });
    expect([aged(WINDOW_MS), aged(WINDOW_MS + 1)]).toEqual([null, "pace"]);
    const ledger = ledgerWith({ reading, statedAt: LATER - WINDOW_MS });
    takePermit(ledger, "node_management", "walk", LATER);
    ledger.categories.node_management.pace.paidUntil = NEVER;
    expect(openingOf(ledger, "walk", LATER).waitReason).toBe(null);
    expect(openingOf(ledger, "walk", LATER + 1)).toEqual({ at: Number.POSITIVE_INFINITY, waitReason: "learning" });
  });

  test("a limit of something wider does not lead", () => {
    expect(hold({ reading: state(490, { limit: 500 }), ahead: 5 })).toBe("pace");
    expect(hold({ reading: state(90, { limit: 101 }), ahead: 5 })).toBe("pace");
  });

  test("polling leaves the reserve and waits for the reset, and actions use half of it", () => {
    const left = (remaining: number, lane: Lane, more: Partial<LimitReading> = {}) =>
      openingOf(ledgerWith({ reading: state(remaining, more) }), lane, LATER);
    const resetAt = LATER + 30_000;
    expect(left(21, "walk", { resetAt }).waitReason).toBe(null);
    expect(left(20, "walk", { resetAt })).toEqual({ at: resetAt, waitReason: "remaining" });
    expect(left(20, "walk")).toEqual({ at: LATER + 61_000, waitReason: "remaining" });
    expect(left(20, "walk", { resetAt: LATER + 900_000 }).at).toBe(LATER + 61_000);
    expect(left(11, "action", { resetAt }).waitReason).toBe(null);
    expect(left(10, "action", { resetAt })).toEqual({ at: resetAt, waitReason: "remaining" });
    // Of a smaller limit than ours the reserve is smaller.
    expect(left(11, "walk", { resetAt, limit: 50 }).waitReason).toBe(null);
    expect(left(10, "walk", { resetAt, limit: 50 }).waitReason).toBe("remaining");
  });

  test("where next to nothing is left it waits for silence of a window, whatever the reset", () => {
    const left = (remaining: number) =>
      openingOf(ledgerWith({ reading: state(remaining, { resetAt: LATER + 30_000 }) }), "walk", LATER).at;
    expect([left(2), left(3)]).toEqual([LATER + 61_000, LATER + 30_000]);
  });

  test("after the reset one call learns", () => {
    const ledger = ledgerWith({ reading: state(20, { resetAt: LATER + 30_000 }) });
    expect(openingOf(ledger, "walk", LATER + 30_000).waitReason).toBe(null);
    takePermit(ledger, "node_management", "walk", LATER + 30_000);
    ledger.categories.node_management.pace.paidUntil = NEVER;
    expect(openingOf(ledger, "walk", LATER + 30_001).waitReason).toBe("learning");
  });
});

describe("where others are expected", () => {
  /** 50 calls of others a window, of which they had `had` in this one. */
  const crowded = (remaining: number, had = 0, isBucket = false): Said => ({
    reading: state(remaining, { resetAt: LATER + 30_000 }),
    others: {
      expectedCalls: () => 50,
      callsInWindow: () => had,
      isTokenBucket: () => isBucket,
      ownCallsFewerThan: () => NEVER,
      lastOwnCallAt: () => NEVER,
    },
  });
  const of = (said: Said, lane: Lane = "walk", now = LATER) => openingOf(ledgerWith(said), lane, now);

  test("as much is left to them, less what they had of this window", () => {
    expect([of(crowded(51)).waitReason, of(crowded(50)).waitReason]).toEqual([null, "remaining"]);
    expect([of(crowded(19, 30)).waitReason, of(crowded(18, 30)).waitReason]).toEqual([null, "remaining"]);
    expect([of(crowded(3, 60)).waitReason, of(crowded(2, 60)).waitReason]).toEqual([null, "remaining"]);
    expect([of(crowded(11), "action").waitReason, of(crowded(10), "action").waitReason]).toEqual([null, "remaining"]);
  });

  test("a bucket has the reserve for them", () => {
    expect([of(crowded(21, 0, true)).waitReason, of(crowded(20, 0, true)).waitReason]).toEqual([null, "remaining"]);
  });

  test("a look now and then tells whether they still are there", () => {
    expect(of(crowded(40))).toEqual({ at: LATER + 5_000, waitReason: "remaining" });
    expect(of(crowded(40), "walk", LATER + 12_000)).toEqual({ at: LATER + 15_000, waitReason: "remaining" });
    expect(of(crowded(40), "walk", LATER + 15_000).waitReason).toBe(null);
  });

  test("polling waits for the room that they leave, and looks anew every twelfth of a window", () => {
    const waiting = (at: number): Said => ({
      others: { expectedCalls: () => 50, ownCallsFewerThan: () => at, lastOwnCallAt: () => NEVER },
    });
    expect(of(waiting(LATER + 3_000))).toEqual({ at: LATER + 3_000, waitReason: "others" });
    expect(of(waiting(LATER + 8_000))).toEqual({ at: LATER + 5_000, waitReason: "others" });
    expect(of({ ...waiting(LATER + 8_000), ahead: 15 })).toEqual({ at: LATER + 15 * COST_MS, waitReason: "pace" });
  });
});

describe("under a plan of 100 calls a minute", () => {
  const of = (said: Said, lane: Lane, now = LATER) =>
    openingOf(ledgerWith({ ...said, requestsPerMinute: 100 }), lane, now);

  test("all categories together keep to its pace", () => {
    expect(of({ planAhead: 5 }, "walk")).toEqual({ at: LATER + 5 * COST_MS, waitReason: "plan" });
    expect(of({ planAhead: 0 }, "walk").waitReason).toBe(null);
  });

  test("actions run ahead of it into the reserve, but not in the first minute of a process", () => {
    expect([of({ planAhead: 10 }, "action").waitReason, of({ planAhead: 10.5 }, "action").waitReason]).toEqual([
      null,
      "plan",
    ]);
    const first = { statedAt: 10_000, from: 20_000, planAhead: 5 };
    expect(of(first, "action", 20_000).waitReason).toBe("plan");
  });

  test("actions keep to a pace among themselves", () => {
    expect(of({ planActionsAhead: 12 }, "action")).toEqual({ at: LATER + 3 * ACTION_COST_MS, waitReason: "plan" });
    expect(of({ planActionsAhead: 12 }, "walk").waitReason).toBe(null);
    expect(of({ planAhead: 30, planActionsAhead: 12 }, "action").at).toBeCloseTo(LATER + 20 * COST_MS, 6);
  });
});
