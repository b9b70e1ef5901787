import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Safety } from "../../src/model/policy/safety.ts";
import { distrust, type Sighting } from "../../src/inventory/trust.ts";
import { usualSafety } from "../harness/policies.ts";
import { texts } from "../policy/guard-case.ts";

/** A sighting that nothing speaks against, but for what is said of it. */
const sighting = (said: Partial<Sighting>): Sighting => ({
  completeWalks: 9,
  lastComplete: true,
  missing: null,
  settledAgeMs: 30 * SECOND_MS,
  freshMs: 3 * MINUTE_MS,
  nodes: 100,
  records: 100,
  baseline: 100,
  unknown: 0,
  freshestLastSeenMs: SECOND_MS,
  hasServiceTime: true,
  ...said,
});

const look = (said: Partial<Sighting>, trust: Partial<Safety["trust"]> = {}) => {
  const { blockers, isBroken } = distrust(sighting(said), { ...usualSafety.trust, ...trust });
  return { said: texts(blockers), isBroken };
};

const FINE = { said: [], isBroken: false };
const broken = (...said: string[]) => ({ said, isBroken: true });
const waiting = (...said: string[]) => ({ said, isBroken: false });

test("nothing speaks against a sight in which all is well", () => {
  expect(look({})).toEqual(FINE);
});

describe("what only waits", () => {
  test("warms up until enough walks were complete", () => {
    expect(look({ completeWalks: 1 })).toEqual(waiting("warming_up: 1 of 2 complete walks since the start"));
    expect(look({ completeWalks: 2 })).toEqual(FINE);
  });

  test("one walk that failed brings nothing, and breaks nothing", () => {
    expect(look({ lastComplete: false, nodes: 3, records: 3 })).toEqual(
      waiting("inventory_incomplete: the last walk of the nodes was not complete; it ends with the next complete one"),
    );
  });

  test("a walk that misses more nodes than allowed holds, and names what ends the hold", () => {
    expect(look({ lastComplete: false, missing: { nodes: 12, of: 100 } })).toEqual(
      waiting(
        "inventory_incomplete: the last walk of the nodes misses 12 of 100, more than 2 %; it ends with a walk that misses fewer, or with accept-inventory if that is right",
      ),
    );
  });

  test("no walk was complete yet: half an inventory is none, also without a warm-up (pain 2)", () => {
    const none = { completeWalks: 0, lastComplete: false, settledAgeMs: null, nodes: 50, records: 50, baseline: 0 };
    expect(look(none)).toEqual(
      waiting(
        "warming_up: 0 of 2 complete walks since the start",
        "inventory_incomplete: no walk of the nodes was complete yet",
      ),
    );
    expect(look(none, { warmupWalks: 0 })).toEqual(
      waiting("inventory_incomplete: no walk of the nodes was complete yet"),
    );
  });
});

describe("what is broken", () => {
  test("a last complete walk that is no longer fresh breaks the trust", () => {
    expect(look({ settledAgeMs: 180 * SECOND_MS })).toEqual(FINE);
    const said = "inventory_incomplete: the last complete walk of the nodes is 181 s old, more than 180 s";
    expect(look({ settledAgeMs: 180 * SECOND_MS + 1 })).toEqual(broken(said));
    expect(look({ settledAgeMs: 180 * SECOND_MS + 1, lastComplete: false })).toEqual(broken(said));
  });

  test("a fleet that shrank under its share of the last days", () => {
    expect(look({ nodes: 80, records: 80 })).toEqual(FINE);
    expect(look({ nodes: 79, records: 79 })).toEqual(
      broken(
        "inventory_shrunk: 79 nodes are listed, less than 80 % of the 100 of the last days; if that is right, accept-inventory says so",
      ),
    );
    expect(look({ nodes: 0, records: 0 }).isBroken).toBe(true);
    // Of a walk that was read to its end, though it misses nodes, it is known how many there are; of one cut off it is not.
    const partial = { nodes: 50, records: 50, lastComplete: false };
    expect(look({ ...partial, missing: { nodes: 3, of: 53 } }).isBroken).toBe(true);
    expect(look({ ...partial, missing: null }).isBroken).toBe(false);
    expect(look({ nodes: 55, records: 55 }, { minInventory: 0.55 })).toEqual(FINE);
    expect(look({ nodes: 1, records: 1, baseline: 0 })).toEqual(FINE);
  });

  test("too many records that can't be read, or nodes of an unknown status", () => {
    expect(look({ unknown: 10 })).toEqual(FINE);
    expect(look({ unknown: 11 })).toEqual(
      broken("inventory_unknown: 11 of 100 nodes can't be read or are of an unknown status, more than 10 %"),
    );
    expect(look({ unknown: 1 }, { maxUnknown: 0 }).isBroken).toBe(true);
    expect(look({ unknown: 29 }, { maxUnknown: 0.29 })).toEqual(FINE);
  });

  test("a walk that failed early makes no share of the unknown", () => {
    const failed = { lastComplete: false, nodes: 20, records: 20 };
    expect(look({ ...failed, unknown: 10 }).isBroken).toBe(false);
    expect(look({ ...failed, unknown: 11 }).isBroken).toBe(true);
  });

  test("a service that never says what time it is", () => {
    expect(look({ hasServiceTime: false, freshestLastSeenMs: null })).toEqual(
      broken("service_clock: the service never said what time it is (no Date header)"),
    );
  });

  test("the freshest last_seen of the fleet is itself stale: pain 5, a checker's own failure", () => {
    expect(look({ freshestLastSeenMs: 5 * MINUTE_MS })).toEqual(FINE);
    expect(look({ freshestLastSeenMs: 5 * MINUTE_MS + 1 })).toEqual(
      broken("last_seen_stale: the freshest last_seen of the whole fleet is 301 s old, more than 300 s"),
    );
    expect(look({ freshestLastSeenMs: null })).toEqual(broken("last_seen_stale: no node has a last_seen"));
  });

  test("clocks say nothing before a node was seen", () => {
    const nobody = { nodes: 0, records: 0, baseline: 0, freshestLastSeenMs: null, hasServiceTime: false };
    expect(look(nobody)).toEqual(FINE);
  });
});

test("all that speaks against a sight is told, and what is broken makes it broken", () => {
  const { blockers, isBroken } = distrust(
    sighting({ completeWalks: 1, nodes: 50, records: 60, unknown: 20, freshestLastSeenMs: 99 * MINUTE_MS }),
    usualSafety.trust,
  );
  expect(blockers.map(({ reason }) => reason)).toEqual([
    "inventory_shrunk",
    "inventory_unknown",
    "last_seen_stale",
    "warming_up",
  ]);
  expect(isBroken).toBe(true);
});
