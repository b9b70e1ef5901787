import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { CallCounter } from "../../../src/model/ports.ts";
import type { Permit } from "../../../src/rate-limit/ledger.ts";
import { type Category, type Lane, type Limits, PLANS } from "../../../src/rate-limit/limits.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import {
  businessLimits,
  createRecordingLog,
  createTestRateLimiter,
  START_MS,
} from "../../harness/daemon/virtual-daemon.ts";

/** Without a limit on concurrent calls, since most tests return no permits. */
const limits: Limits = { ...businessLimits, plan: { ...PLANS.business, concurrentRequests: null } };

function open(calls: CallCounter = createMemoryStateStore().calls) {
  const clock = createVirtualClock(START_MS);
  const log = createRecordingLog();
  const waits: string[] = [];
  const externalUsage: string[] = [];
  const rateLimiter = createTestRateLimiter({
    limits,
    clock,
    random: () => 0.5,
    calls,
    log,
    onWait: (category, ms) => void waits.push(`${category} ${Math.round(ms)}`),
    onExternalCalls: (scope, learned) => void externalUsage.push(`${scope} ${learned}`),
  });
  const order: string[] = [];
  const ask = (category: Category, lane: Lane, signal = new AbortController().signal) =>
    rateLimiter.acquire(category, lane, signal).then((permit) => {
      order.push(permit === null ? `${lane} canceled` : lane);
      return permit;
    });
  const answer = (permit: Permit | null, remaining: number) =>
    rateLimiter.release(permit!, { kind: "answered", reading: { limit: 100, remaining, resetAt: null } });
  return { clock, log, rateLimiter, order, ask, answer, waits, externalUsage };
}

test("serves actions first, the classes in turn, and suspects before routine details", async () => {
  const { clock, order, ask, answer } = open();
  const learning = ask("node_management", "stats");
  await clock.advance(1_000);
  for (const lane of ["stats", "detail", "walk", "suspect", "action", "detail"] as const)
    void ask("node_management", lane);
  await clock.advance(10_000);
  expect(order).toEqual(["stats"]);
  answer(await learning, 99);
  await clock.advance(10_000);
  expect(order).toEqual(["stats", "action", "walk", "suspect", "detail", "stats", "detail"]);
});

test("serves concurrent calls in the ratio of the weights", async () => {
  const { clock, order, ask, answer, rateLimiter } = open();
  const learning = ask("node_management", "walk");
  await clock.advance(1_000);
  answer(await learning, 99);
  const one = { weight: 1, savedMax: 0 };
  rateLimiter.setShares({ nodes: { weight: 3, savedMax: 0 }, details: one, sessions: one, stats: one });
  for (let call = 0; call < 40; call++) {
    void ask("node_management", "walk");
    void ask("node_management", "detail");
  }
  await clock.advance(30_000);
  const served = order.slice(1);
  const walks = served.filter((lane) => lane === "walk").length;
  expect(served.length).toBeGreaterThan(24);
  expect(Math.abs(walks - 0.75 * served.length)).toBeLessThanOrEqual(2);
});

test("a held category does not delay another one", async () => {
  const { clock, order, ask, answer } = open();
  answer(await Promise.all([ask("node_management", "walk"), clock.advance(1_000)]).then(([permit]) => permit), 5);
  void ask("node_management", "walk");
  void ask("session_monitoring", "stats");
  await clock.advance(5_000);
  expect(order).toEqual(["walk", "stats"]);
});

test("a canceled call gets no permit and is not counted", async () => {
  const { clock, order, ask, rateLimiter } = open();
  const giveUp = new AbortController();
  giveUp.abort();
  expect(await rateLimiter.acquire("node_management", "walk", giveUp.signal)).toBeNull();
  const later = new AbortController();
  void ask("node_management", "walk");
  void ask("node_management", "detail", later.signal);
  await clock.advance(5_000);
  later.abort();
  await clock.advance(5_000);
  expect(order).toEqual(["walk", "detail canceled"]);
  expect(rateLimiter.ledger.monthUsed).toBe(1);
});

test("logs once if the store fails, counts in memory, and stores the calls later", async () => {
  let isFull = true;
  let counted = 0;
  const { clock, ask, answer, log, rateLimiter } = open({
    since: () => 7,
    async add(_day, calls) {
      if (isFull) throw new Error("database or disk is full");
      counted += calls;
    },
  });
  const call = async () => {
    const permit = ask("node_management", "walk");
    await clock.advance(5_000);
    answer(await permit, 90);
  };
  await call();
  await call();
  expect(rateLimiter.ledger.monthUsed).toBe(9);
  expect(log.lines).toMatchObject([{ level: "error", message: expect.stringContaining("call count can't be stored") }]);
  isFull = false;
  await call();
  expect(counted).toBe(3);
  expect(log.lines.at(-1)).toMatchObject({ level: "info", fields: { calls: 3 } });
});

test("calls are available again when a new month starts", async () => {
  const used = new Map([["2026-03-01", 1_000_000]]);
  const { clock, order, ask } = open({ since: (day) => used.get(day) ?? 0, add: async () => {} });
  void ask("node_management", "walk");
  await clock.advance(30 * 24 * 3_600_000);
  expect(order).toEqual([]);
  await clock.advance(2 * 24 * 3_600_000);
  expect(order).toEqual(["walk"]);
});

test("calls are available again within seconds once the count of a new month can be read", async () => {
  let isUnreadable = false;
  const since = (day: string) => {
    if (isUnreadable) throw new Error("the disk failed");
    return day === "2026-03-01" ? 1_000_000 : 0;
  };
  const { clock, order, ask } = open({ since, add: async () => {} });
  void ask("node_management", "walk");
  isUnreadable = true;
  await clock.advance(31 * DAY_MS + MINUTE_MS);
  expect(order).toEqual([]);
  isUnreadable = false;
  await clock.advance(2 * SECOND_MS);
  expect(order).toEqual(["walk"]);
});

test("reports each proven external call once, and counts it in the month", async () => {
  const { clock, ask, answer, rateLimiter, externalUsage } = open();
  for (const remaining of [99, 68, 67]) {
    const permit = ask("node_management", "walk");
    await clock.advance(20_000);
    answer(await permit, remaining);
  }
  expect(externalUsage).toEqual(["node_management 30"]);
  expect(rateLimiter.monthUsed()).toBe(3 + 30);
  expect(rateLimiter.externalCalls().node_management).toBeGreaterThan(30);
});

test("flush stores the calls that a full disk did not store", async () => {
  let isFull = true;
  let stored = 0;
  const { clock, ask, answer, rateLimiter } = open({
    since: () => 0,
    async add(_day, calls) {
      if (isFull) throw new Error("database or disk is full");
      stored += calls;
    },
  });
  const permit = ask("node_management", "walk");
  await clock.advance(5_000);
  answer(await permit, 90);
  await rateLimiter.flush();
  expect(stored).toBe(0);
  isFull = false;
  await rateLimiter.flush();
  await rateLimiter.flush();
  expect(stored).toBe(1);
});

test("a call that is canceled while the store counts it gives its permit back at once", async () => {
  const hanging = Promise.withResolvers<void>();
  let stored = 0;
  const { clock, order, ask, rateLimiter } = open({
    since: () => 0,
    async add(_day, calls) {
      await hanging.promise;
      stored += calls;
    },
  });
  const giveUp = new AbortController();
  void ask("node_management", "walk", giveUp.signal);
  await clock.advance(5_000);
  expect([order, rateLimiter.ledger.inFlight]).toEqual([[], 1]);
  giveUp.abort();
  await clock.advance(1);
  expect([order, rateLimiter.ledger.inFlight, rateLimiter.ledger.monthUsed]).toEqual([["walk canceled"], 0, 0]);
  hanging.resolve();
  await rateLimiter.flush();
  expect([order, stored]).toEqual([["walk canceled"], 0]);
});
