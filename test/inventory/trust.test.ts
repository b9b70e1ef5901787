import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Safety } from "../../src/config/schema/safety.ts";
import { assessTrust, type InventoryStatus } from "../../src/inventory/trust.ts";
import { defaultSafety } from "../harness/policies.ts";
import { blockerTexts } from "../policy/guard-case.ts";

/** The status of an inventory that is trusted, with overrides. */
const inventoryStatus = (overrides: Partial<InventoryStatus>): InventoryStatus => ({
  completeWalks: 9,
  lastComplete: true,
  missing: null,
  completeWalkAgeMs: 30 * SECOND_MS,
  walkHeldForMs: 0,
  monthlyBudget: null,
  freshMs: 3 * MINUTE_MS,
  nodes: 100,
  recordsRead: 100,
  largestWalkNodes: 100,
  unknownRecords: 0,
  freshestLastSeenMs: SECOND_MS,
  nodesAhead: 0,
  hasServiceTime: true,
  ...overrides,
});

const assess = (overrides: Partial<InventoryStatus>, trust: Partial<Safety["trust"]> = {}) => {
  const { blockers, isUntrusted } = assessTrust(inventoryStatus(overrides), { ...defaultSafety.trust, ...trust });
  return { blockers: blockerTexts(blockers), isUntrusted };
};

const TRUSTED = { blockers: [], isUntrusted: false };
const untrusted = (...blockers: string[]) => ({ blockers, isUntrusted: true });
const notReady = (...blockers: string[]) => ({ blockers, isUntrusted: false });

const CAUSE =
  "; for the cause, see the nodes collector in `status`; if a page stays unreadable, an operator can raise safety.trust.max_missing";

test("trusts an inventory without problems", () => {
  expect(assess({})).toEqual(TRUSTED);
});

describe("an inventory that is not ready", () => {
  test("warms up until enough walks are complete", () => {
    expect(assess({ completeWalks: 1 })).toEqual(notReady("warming_up: 1 of 2 complete walks since the start"));
    expect(assess({ completeWalks: 2 })).toEqual(TRUSTED);
  });

  test("is incomplete, not untrusted, after one failed walk", () => {
    expect(assess({ lastComplete: false, recordsRead: 3 })).toEqual(
      notReady(
        `inventory_incomplete: the last walk of the nodes was not complete${CAUSE}; the hold ends with the next complete walk`,
      ),
    );
  });

  test("is incomplete if a walk misses too many nodes, and the blocker says how the hold ends", () => {
    expect(assess({ lastComplete: false, missing: { nodes: 12, of: 100 } })).toEqual(
      notReady(
        "inventory_incomplete: the last walk missed 12 of 100 nodes, more than 2%; the hold ends with a walk that misses fewer, or with accept-inventory if the missing nodes do not exist",
      ),
    );
  });

  test("is incomplete before the first complete walk, even without a warm-up", () => {
    const none = {
      completeWalks: 0,
      lastComplete: false,
      completeWalkAgeMs: null,
      nodes: 50,
      recordsRead: 50,
      largestWalkNodes: 0,
    };
    expect(assess(none)).toEqual(
      notReady(
        "warming_up: 0 of 2 complete walks since the start",
        "inventory_incomplete: no walk of the node list has completed yet",
      ),
    );
    expect(assess(none, { warmupWalks: 0 })).toEqual(
      notReady("inventory_incomplete: no walk of the node list has completed yet"),
    );
  });
});

describe("an inventory whose walks wait for the monthly budget", () => {
  const slow = { monthlyBudget: { walkIntervalMs: 2 * HOUR_MS, leftMs: 20 * HOUR_MS } };
  const spent = { monthlyBudget: { walkIntervalMs: null, leftMs: 20 * HOUR_MS } };
  const every = "the month's calls allow a walk every 2h, until the month ends in 20h";
  const none =
    "the month's calls do not suffice for another walk, so the list is read again in 20h, when the month ends, or after a reload that changes limits";

  test("says how often they allow one, or when the month ends, if a walk is missing", () => {
    expect(assess({ ...slow, completeWalks: 1 })).toEqual(
      notReady(`warming_up: 1 of 2 complete walks since the start; ${every}`),
    );
    expect(assess({ ...slow, lastComplete: false })).toEqual(
      notReady(
        `inventory_incomplete: the last walk of the nodes was not complete${CAUSE}; the hold ends with the next complete walk; ${every}`,
      ),
    );
    expect(assess({ ...spent, completeWalkAgeMs: 181 * SECOND_MS })).toEqual(
      untrusted(`inventory_incomplete: the last complete walk of the nodes is 181 s old, more than 180 s; ${none}`),
    );
    expect(assess(spent)).toEqual(TRUSTED);
  });
});

describe("an untrusted inventory", () => {
  test("has a last complete walk that is no longer fresh", () => {
    expect(assess({ completeWalkAgeMs: 180 * SECOND_MS })).toEqual(TRUSTED);
    const stale = `inventory_incomplete: the last complete walk of the nodes is 181 s old, more than 180 s${CAUSE}`;
    expect(assess({ completeWalkAgeMs: 180 * SECOND_MS + 1 })).toEqual(untrusted(stale));
    expect(assess({ completeWalkAgeMs: 180 * SECOND_MS + 1, lastComplete: false })).toEqual(untrusted(stale));
  });

  test("has no complete walk although the first one should have ended", () => {
    const none = { completeWalks: 0, lastComplete: false, nodes: 0, recordsRead: 0, largestWalkNodes: 0 };
    expect(assess({ ...none, completeWalkAgeMs: 180 * SECOND_MS + 1 })).toEqual(
      untrusted(
        `inventory_incomplete: no walk of the nodes has completed in the 181 s since the start, more than 180 s${CAUSE}`,
        "warming_up: 0 of 2 complete walks since the start",
      ),
    );
  });

  test("has shrunk below the minimum share of the last days", () => {
    expect(assess({ nodes: 80, recordsRead: 80 })).toEqual(TRUSTED);
    expect(assess({ nodes: 79, recordsRead: 79 })).toEqual(
      untrusted(
        "inventory_shrunk: 79 nodes are listed, fewer than 80% of the 100 listed in the last 7 days; if that is correct, run accept-inventory",
      ),
    );
    expect(assess({ nodes: 0, recordsRead: 0 }).isUntrusted).toBe(true);
    // A walk that reached the end of the list shows how many nodes there are; after a cut walk, those known count.
    const partial = { recordsRead: 50, lastComplete: false };
    expect(assess({ ...partial, nodes: 50, missing: { nodes: 3, of: 53 } }).isUntrusted).toBe(true);
    expect(assess({ ...partial, nodes: 50, missing: null }).isUntrusted).toBe(true);
    expect(assess({ ...partial, nodes: 100, missing: null }).isUntrusted).toBe(false);
    expect(assess({ ...partial, nodes: 50, missing: null, completeWalks: 0 }).isUntrusted).toBe(false);
    expect(assess({ nodes: 55, recordsRead: 55 }, { minInventory: 0.55 })).toEqual(TRUSTED);
    expect(assess({ nodes: 1, recordsRead: 1, largestWalkNodes: 0 })).toEqual(TRUSTED);
  });

  test("has too many unreadable records or nodes with an unknown status", () => {
    expect(assess({ unknownRecords: 10 })).toEqual(TRUSTED);
    expect(assess({ unknownRecords: 11 })).toEqual(
      untrusted("inventory_unknown: 11 of 100 nodes are unreadable or have an unknown status, more than 10%"),
    );
    expect(assess({ unknownRecords: 1 }, { maxUnknown: 0 }).isUntrusted).toBe(true);
    expect(assess({ unknownRecords: 29 }, { maxUnknown: 0.29 })).toEqual(TRUSTED);
  });

  test("counts unknown records as a share of the whole fleet, also if a walk failed early", () => {
    const failed = { lastComplete: false, recordsRead: 20 };
    expect(assess({ ...failed, unknownRecords: 10 }).isUntrusted).toBe(false);
    expect(assess({ ...failed, unknownRecords: 11 }).isUntrusted).toBe(true);
  });

  test("is from a service without Date headers", () => {
    expect(assess({ hasServiceTime: false, freshestLastSeenMs: null })).toEqual(
      untrusted("service_clock: no response from the service had a Date header"),
    );
  });

  test("has only stale last_seen times", () => {
    expect(assess({ freshestLastSeenMs: 5 * MINUTE_MS })).toEqual(TRUSTED);
    expect(assess({ freshestLastSeenMs: 5 * MINUTE_MS + 1 })).toEqual(
      untrusted("last_seen_stale: the freshest last_seen of the whole fleet is 301 s old, more than 300 s"),
    );
    expect(assess({ freshestLastSeenMs: HOUR_MS, nodesAhead: 99 })).toEqual(
      untrusted(
        "last_seen_stale: the freshest last_seen of the whole fleet is 3600 s old, more than 300 s; ignoring 99 nodes whose last_seen is later than the service's Date",
      ),
    );
    expect(assess({ freshestLastSeenMs: null })).toEqual(
      untrusted("last_seen_stale: no node has a last_seen, or every one is later than the service's Date"),
    );
  });

  test("is not reported for its clocks before a node was seen", () => {
    const empty = { nodes: 0, recordsRead: 0, largestWalkNodes: 0, freshestLastSeenMs: null, hasServiceTime: false };
    expect(assess(empty)).toEqual(TRUSTED);
  });
});

test("reports every blocker at once", () => {
  const { blockers, isUntrusted } = assessTrust(
    inventoryStatus({
      completeWalks: 1,
      nodes: 50,
      recordsRead: 60,
      unknownRecords: 20,
      freshestLastSeenMs: 99 * MINUTE_MS,
    }),
    defaultSafety.trust,
  );
  expect(blockers.map(({ reason }) => reason)).toEqual([
    "inventory_shrunk",
    "inventory_unknown",
    "last_seen_stale",
    "warming_up",
  ]);
  expect(isUntrusted).toBe(true);
});
