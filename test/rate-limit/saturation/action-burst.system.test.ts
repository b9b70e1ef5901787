import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { availabilityOf } from "../../../src/rate-limit/availability.ts";
import { createLedger } from "../../../src/rate-limit/ledger.ts";
import type { Category, Limits, PLANS } from "../../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../../src/rate-limit/permits.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { HOURS_SETUPS, limitsWithoutPlan } from "../limited-service.ts";
import { type SaturatedDay, simulateDay } from "./saturated-day.ts";

const PLANS_TESTED = ["starter", "enterprise", "business"] as const;
/** Each limiter and kind of headers with every plan; in the short form with one plan, in turns. */
const services = HOURS_SETUPS.flatMap((limiting, index) =>
  PLANS_TESTED.filter((_, plan) => isLongRun || plan === index % 2).map((plan) => ({
    ...limiting,
    plan,
  })),
);
const NEVER = Number.MAX_SAFE_INTEGER;
/** Enough for two floods of actions. */
const HOURS = isLongRun ? 1 : 0.6;
const DISTURBED_HOURS = isLongRun ? 1 : 0.5;

/** A thousand simultaneous actions in each category, repeatedly, besides constant polling. */
const withActions = (
  parts: Pick<SaturatedDay, "limiter" | "headers"> & { plan: keyof typeof PLANS } & Partial<SaturatedDay>,
): SaturatedDay => ({
  limits: limitsWithoutPlan(parts.plan),
  reset: "full",
  hours: HOURS,
  seed: 11,
  restartEveryMs: NEVER,
  categories: ["node_management", "session_monitoring"],
  lane: (random) => (random() < 0.5 ? "walk" : "detail"),
  actionFlood: { calls: 1_000, everyMs: 25 * MINUTE_MS },
  ...parts,
});

describe.each(services)("1,000 actions at once, $limiter with headers: $headers, plan $plan", (service) => {
  test("cause no 429, and both actions and polling continue", () => {
    const report = simulateDay(withActions(service));
    expect(report.rejected).toBe(0);
    expect(report.actions).toBeGreaterThan((60 * HOURS - 21) * 40);
    // A full bucket that was used up immediately is paid for first: 180 calls at 80 per minute.
    const isBucket = service.limiter === "token_bucket" && service.headers !== "off" && service.plan === "enterprise";
    expect(report.pollingGapMs).toBeLessThan((isBucket ? 2.5 : 1.1) * MINUTE_MS);
  });

  test.each(isLongRun ? [20 * MINUTE_MS, 3 * MINUTE_MS, MINUTE_MS / 2] : [3 * MINUTE_MS])(
    "cause no 429 if the process is killed every %i ms meanwhile",
    (restartEveryMs) => {
      expect(simulateDay(withActions({ ...service, hours: DISTURBED_HOURS, restartEveryMs })).rejected).toBe(0);
    },
  );

  test("cause no 429 for another user of the key within half of the reserve", () => {
    // Both categories share the reserve of the Starter plan.
    const externalCallsPerMinute = service.plan === "starter" ? 4 : 8;
    const report = simulateDay(withActions({ ...service, hours: DISTURBED_HOURS, externalCallsPerMinute }));
    expect(report.rejected + report.externalRejected).toBe(0);
  });
});

const answered = (remaining: number) => ({
  kind: "answered" as const,
  reading: { limit: 100, remaining, resetAt: null },
});

/** Number of actions that may be sent together. */
function actionsAtOnce(limits: Limits, category: Category, remaining: number | null): number {
  const ledger = createLedger(limits, 0);
  const now = 30 * MINUTE_MS;
  const first = takePermit(ledger, category, "action", now - MINUTE_MS / 2);
  settlePermit(ledger, first, remaining === null ? { kind: "answered", reading: null } : answered(remaining), 0, now);
  let calls = 0;
  for (; availabilityOf(ledger, category, "action", now).at <= now; calls++)
    takePermit(ledger, category, "action", now);
  return calls;
}

test("as many actions as half of the reserve may be sent together, however many calls remain", () => {
  expect(actionsAtOnce(limitsWithoutPlan("enterprise"), "node_management", null)).toBe(10);
  expect(actionsAtOnce(limitsWithoutPlan("enterprise"), "node_management", 199)).toBe(10);
  expect(actionsAtOnce(limitsWithoutPlan("enterprise"), "session_monitoring", null)).toBe(50);
  expect(actionsAtOnce(limitsWithoutPlan("starter"), "session_monitoring", null)).toBe(9);
});

test("actions leave half of the reserve of the remaining calls", () => {
  expect(actionsAtOnce(limitsWithoutPlan("enterprise"), "node_management", 14)).toBe(4);
  expect(actionsAtOnce(limitsWithoutPlan("enterprise"), "node_management", 10)).toBe(0);
});

test("actions don't use the reserve in the first window of a process, since the previous one may have", () => {
  const ledger = createLedger(limitsWithoutPlan("enterprise"), 0);
  settlePermit(
    ledger,
    takePermit(ledger, "node_management", "action", 5_000),
    { kind: "answered", reading: null },
    0,
    5_000,
  );
  const waitReasonAt = (now: number) => {
    takePermit(ledger, "node_management", "walk", now);
    return availabilityOf(ledger, "node_management", "action", now).waitReason;
  };
  expect(waitReasonAt(50_000)).toBe("pace");
  expect(waitReasonAt(70_000)).toBeNull();
});

test("actions leave half of the reserve of concurrent requests", () => {
  const ledger = createLedger(limitsWithoutPlan("starter"), 0);
  let now = 0;
  const availability = () => {
    now += 10 * MINUTE_MS;
    const reading = { limit: 500, remaining: 499, resetAt: null };
    ledger.categories.session_monitoring.wasStated = true;
    ledger.categories.session_monitoring.stated.lastStatement = { ...reading, base: 10_000, at: now, settled: 0 };
    return availabilityOf(ledger, "session_monitoring", "action", now);
  };
  while (availability().waitReason === null) takePermit(ledger, "session_monitoring", "action", now);
  expect(availability().waitReason).toBe("concurrency");
  expect(ledger.inFlight).toBe(9);
});

test("a permit that was not used counts nowhere, and is not refunded in the pace", () => {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  settlePermit(ledger, takePermit(ledger, "node_management", "walk", 5_000), answered(80), 0, 5_100);
  const { stated } = ledger.categories.node_management;
  const { sent } = ledger.externalUsage.node_management.own;
  const before = { sent: sent.count(), last: stated.lastStatement };
  const permit = takePermit(ledger, "node_management", "action", 20_000);
  expect(ledger.monthUsed).toBe(2);
  const { pace } = structuredClone(ledger.categories.node_management);
  settlePermit(ledger, permit, { kind: "unused" }, 0, 21_000);
  expect({ sent: sent.count(), last: stated.lastStatement }).toEqual(before);
  expect(ledger).toMatchObject({ monthUsed: 1, inFlight: 0, categories: { node_management: { pace } } });
});
