import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Safety } from "../../src/config/schema/safety.ts";
import { assessTrust, type InventoryStatus } from "../../src/inventory/trust.ts";
import { defaultSafety } from "../harness/policies.ts";
import { blockerTexts } from "../policy/guard-case.ts";

/** A sighting that nothing speaks against, but for what is said of it. */
const inventoryStatus = (said: Partial<InventoryStatus>): InventoryStatus => ({
  completeWalks: 9,
  lastComplete: true,
  missing: null,
  completeWalkAgeMs: 30 * SECOND_MS,
  freshMs: 3 * MINUTE_MS,
  nodes: 100,
  recordsRead: 100,
  largestWalkNodes: 100,
  unknownRecords: 0,
  freshestLastSeenMs: SECOND_MS,
  hasServiceTime: true,
  ...said,
});

const assess = (said: Partial<InventoryStatus>, trust: Partial<Safety["trust"]> = {}) => {
  const { blockers, isUntrusted: isBroken } = assessTrust(inventoryStatus(said), { ...defaultSafety.trust, ...trust });
  return { said: blockerTexts(blockers), isBroken };
};

const TRUSTED = { said: [], isBroken: false };
const untrusted = (...said: string[]) => ({ said, isBroken: true });
const notReady = (...said: string[]) => ({ said, isBroken: false });

test("nothing speaks against a sight in which all is well", () => {
  expect(assess({})).toEqual(TRUSTED);
});

describe("what only waits", () => {
  test("warms up until enough walks were complete", () => {
    expect(assess({ completeWalks: 1 })).toEqual(notReady("warming_up: 1 of 2 complete walks since the start"));
    expect(assess({ completeWalks: 2 })).toEqual(TRUSTED);
  });

  test("one walk that failed brings nothing, and breaks nothing", () => {
    expect(assess({ lastComplete: false, nodes: 3, recordsRead: 3 })).toEqual(
      notReady(
        "inventory_incomplete: the last walk of the nodes was not complete; the hold ends with the next complete walk",
      ),
    );
  });

  test("a walk that misses more nodes than allowed holds, and names what ends the hold", () => {
    expect(assess({ lastComplete: false, missing: { nodes: 12, of: 100 } })).toEqual(
      notReady(
        "inventory_incomplete: the last walk of the nodes misses 12 of 100, more than 2 %; it ends with a walk that misses fewer, or with accept-inventory if that is right",
      ),
    );
  });

  test("no walk was complete yet: half an inventory is none, also without a warm-up (pain 2)", () => {
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

describe("what is broken", () => {
  test("a last complete walk that is no longer fresh breaks the trust", () => {
    expect(assess({ completeWalkAgeMs: 180 * SECOND_MS })).toEqual(TRUSTED);
    const said = "inventory_incomplete: the last complete walk of the nodes is 181 s old, more than 180 s";
    expect(assess({ completeWalkAgeMs: 180 * SECOND_MS + 1 })).toEqual(untrusted(said));
    expect(assess({ completeWalkAgeMs: 180 * SECOND_MS + 1, lastComplete: false })).toEqual(untrusted(said));
  });

  test("a fleet that shrank under its share of the last days", () => {
    expect(assess({ nodes: 80, recordsRead: 80 })).toEqual(TRUSTED);
    expect(assess({ nodes: 79, recordsRead: 79 })).toEqual(
      untrusted(
        "inventory_shrunk: 79 nodes are listed, less than 80 % of the 100 of the last days; if that is correct, run accept-inventory",
      ),
    );
    expect(assess({ nodes: 0, recordsRead: 0 }).isBroken).toBe(true);
    // Of a walk that was read to its end, though it misses nodes, it is known how many there are; of one cut off it is not.
    const partial = { nodes: 50, recordsRead: 50, lastComplete: false };
    expect(assess({ ...partial, missing: { nodes: 3, of: 53 } }).isBroken).toBe(true);
    expect(assess({ ...partial, missing: null }).isBroken).toBe(false);
    expect(assess({ nodes: 55, recordsRead: 55 }, { minInventory: 0.55 })).toEqual(TRUSTED);
    expect(assess({ nodes: 1, recordsRead: 1, largestWalkNodes: 0 })).toEqual(TRUSTED);
  });

  test("too many records that can't be read, or nodes of an unknown status", () => {
    expect(assess({ unknownRecords: 10 })).toEqual(TRUSTED);
    expect(assess({ unknownRecords: 11 })).toEqual(
      untrusted("inventory_unknown: 11 of 100 nodes are unreadable or have an unknown status, more than 10 %"),
    );
    expect(assess({ unknownRecords: 1 }, { maxUnknown: 0 }).isBroken).toBe(true);
    expect(assess({ unknownRecords: 29 }, { maxUnknown: 0.29 })).toEqual(TRUSTED);
  });

  test("a walk that failed early makes no share of the unknown", () => {
    const failed = { lastComplete: false, nodes: 20, recordsRead: 20 };
    expect(assess({ ...failed, unknownRecords: 10 }).isBroken).toBe(false);
    expect(assess({ ...failed, unknownRecords: 11 }).isBroken).toBe(true);
  });

  test("a service that never says what time it is", () => {
    expect(assess({ hasServiceTime: false, freshestLastSeenMs: null })).toEqual(
      untrusted("service_clock: no response of the service had a Date header"),
    );
  });

  test("the freshest last_seen of the fleet is itself stale: pain 5, a checker's own failure", () => {
    expect(assess({ freshestLastSeenMs: 5 * MINUTE_MS })).toEqual(TRUSTED);
    expect(assess({ freshestLastSeenMs: 5 * MINUTE_MS + 1 })).toEqual(
      untrusted("last_seen_stale: the freshest last_seen of the whole fleet is 301 s old, more than 300 s"),
    );
    expect(assess({ freshestLastSeenMs: null })).toEqual(untrusted("last_seen_stale: no node has a last_seen"));
  });

  test("clocks say nothing before a node was seen", () => {
    const nobody = { nodes: 0, recordsRead: 0, largestWalkNodes: 0, freshestLastSeenMs: null, hasServiceTime: false };
    expect(assess(nobody)).toEqual(TRUSTED);
  });
});

test("all that speaks against a sight is told, and what is broken makes it broken", () => {
  const { blockers, isUntrusted: isBroken } = assessTrust(
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
  expect(isBroken).toBe(true);
});
