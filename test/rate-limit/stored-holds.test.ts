import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import { createLedger } from "../../src/rate-limit/ledger.ts";
import { settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import { continueHolds, holdEnds, type StoredHolds, storedHoldsOf } from "../../src/rate-limit/stored-holds.ts";
import { heldUntil } from "../../src/rate-limit/too-many-requests.ts";
import { limitsWithoutPlan } from "./limited-service.ts";

const limits = limitsWithoutPlan("business");
/** Cost of an action of the node category among actions. */
const ACTION_COST_MS = 1_500;
const ALL_ROUTES = { action: HOUR_MS, walk: HOUR_MS, detail: HOUR_MS, stats: HOUR_MS };

/** Returns a ledger that continues holds that were stored at 0 by the wall clock, which now shows `at`. */
function continued(leftMs: StoredHolds["leftMs"], at = 0) {
  const ledger = createLedger(limits, 0);
  continueHolds(ledger, { at: 0, limits, leftMs }, 0, at);
  return ledger;
}

test("a held route does not hold the others, and a route that was not stored is not held", () => {
  const ledger = continued({ node_management: { detail: HOUR_MS } });
  expect(heldUntil(ledger, "node_management", "suspect")).toBe(HOUR_MS);
  expect(availabilityOf(ledger, "node_management", "walk", MINUTE_MS).at).toBe(MINUTE_MS);
  expect(availabilityOf(ledger, "session_monitoring", "stats", MINUTE_MS).at).toBe(MINUTE_MS);
});

test("one action follows a hold of all routes immediately, and the next one is spaced", () => {
  const ledger = continued({ node_management: ALL_ROUTES });
  expect(availabilityOf(ledger, "node_management", "action", 0).at).toBe(HOUR_MS);
  const permit = takePermit(ledger, "node_management", "action", HOUR_MS);
  settlePermit(ledger, permit, { kind: "answered", reading: null }, 0, HOUR_MS);
  expect(availabilityOf(ledger, "node_management", "action", HOUR_MS).at).toBe(HOUR_MS + ACTION_COST_MS);
});

test("the time since the holds were stored counts, by the wall clock", () => {
  const ledger = continued({ node_management: ALL_ROUTES }, 50 * MINUTE_MS);
  expect(holdEnds(ledger, 0)).toEqual(Array(4).fill(10 * MINUTE_MS));
  expect(storedHoldsOf(ledger, 4 * MINUTE_MS, 7)).toMatchObject({
    at: 7,
    leftMs: { node_management: { walk: 6 * MINUTE_MS }, session_monitoring: { walk: 0 } },
  });
});

test("a hold of more than six hours is shortened to that", () => {
  const ledger = continued({ node_management: { walk: 7 * HOUR_MS } });
  expect(heldUntil(ledger, "node_management", "walk")).toBe(6 * HOUR_MS);
});

test.each(["soon", {}, null, Number.NaN])("a stored wait of %o, which is not a duration, holds nothing", (left) => {
  const ledger = continued({ node_management: { walk: left as never } });
  expect(availabilityOf(ledger, "node_management", "walk", MINUTE_MS).at).toBe(MINUTE_MS);
});
