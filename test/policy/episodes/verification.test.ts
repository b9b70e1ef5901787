import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import { type Aftermath, deadlines, stepEnd, UNSEEN_MS_MAX } from "../../../src/policy/episodes/verification.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { NOON } from "../guard-case.ts";

const WITHIN = 15 * MINUTE_MS;
const END = NOON + WITHIN;
/** What can't be told by then won't be. */
const LAST = END + WITHIN;
/** When a step is given up whose node was not seen since. */
const UNSEEN = END + UNSEEN_MS_MAX;

const requests = {
  disconnect: { kind: "disconnect" },
  reboot: { kind: "reboot", force: false },
  quarantine: { kind: "quarantine", reason: "", durationMinutes: 60 },
} as const satisfies Record<string, Action["request"]>;
type Kind = keyof typeof requests;

const sent = (kind: Kind): Action =>
  actionOf(1, "ep-1", { request: requests[kind], state: "sent", sentAt: NOON, endedAt: null, outcome: null });

/** What becomes of a step of 15 minutes: seen a minute after it was sent, freshly, but for what is said. */
const judged = (kind: Kind, seen: Partial<Aftermath>, expect: string | null = null) =>
  stepEnd(
    sent(kind),
    { withinMs: WITHIN, expect },
    { now: NOON + MINUTE_MS, isFresh: true, status: "online", when: "false", expect: null, ...seen },
  );

const kinds = ["disconnect", "reboot", "quarantine"] as const;

describe("a step ends at within, or as soon as expect holds", () => {
  test.each(kinds)("%s: not before within while expect does not hold", (kind) => {
    for (const expected of ["false", "unknown"] as const) {
      for (const when of ["true", "false", "unknown"] as const) {
        const seen = { expect: expected, when, status: "offline" } as const;
        expect(judged(kind, { ...seen, now: END - 1 }, "…")).toBeNull();
      }
      expect(judged(kind, { expect: expected, when: "true", status: "offline", now: END }, "…")).toBe("ineffective");
      expect(judged(kind, { expect: expected, when: "false", now: END }, "…")).toBe("verified");
    }
  });

  test.each(kinds)("%s: as soon as expect holds, by what when says then", (kind) => {
    expect(judged(kind, { expect: "true", when: "false" }, "…")).toBe("verified");
    expect(judged(kind, { expect: "true", when: "true" }, "…")).toBe("ineffective");
    expect(judged(kind, { expect: "true", when: "unknown" }, "…")).toBeNull();
  });
});

describe("the default expect", () => {
  test("of a reboot: when is false and the node is online", () => {
    expect(judged("reboot", { when: "false", status: "online" })).toBe("verified");
    expect(judged("reboot", { when: "false", status: "rebooting" })).toBeNull();
    expect(judged("reboot", { when: "true", status: "online" })).toBeNull();
    expect(judged("reboot", { when: "unknown", status: "online" })).toBeNull();
  });

  test("of a quarantine: status is quarantined", () => {
    expect(judged("quarantine", { when: "false", status: "quarantined" })).toBe("verified");
    expect(judged("quarantine", { when: "false", status: "online" })).toBeNull();
    expect(judged("quarantine", { when: "true", status: "offline" })).toBeNull();
  });

  test("of a disconnect: none, so it waits for when to be false", () => {
    expect(judged("disconnect", { when: "false", status: "offline" })).toBe("verified");
    expect(judged("disconnect", { when: "true" })).toBeNull();
    expect(judged("disconnect", { when: "unknown" })).toBeNull();
  });
});

describe("ended with", () => {
  test.each(kinds)("when false, a %s is verified", (kind) => {
    expect(judged(kind, { when: "false", now: END })).toBe("verified");
  });

  test.each(kinds)("when true, a %s is ineffective", (kind) => {
    expect(judged(kind, { when: "true", now: END })).toBe("ineffective");
  });

  test("when true inside of our quarantine, the quarantine is ineffective as soon as it is seen", () => {
    expect(judged("quarantine", { when: "true", status: "quarantined" })).toBe("ineffective");
  });

  test("when unknown inside of our quarantine, it is verified: that it is in there is what was asked for", () => {
    expect(judged("quarantine", { when: "unknown", status: "quarantined" })).toBe("verified");
  });

  test.each(kinds)("when unknown, a %s is waited for a while longer, and is then in doubt", (kind) => {
    expect(judged(kind, { when: "unknown", now: END })).toBeNull();
    expect(judged(kind, { when: "unknown", now: LAST - 1 })).toBeNull();
    expect(judged(kind, { when: "unknown", now: LAST })).toBe("in_doubt");
  });

  test("when false and the node not back, a reboot is waited for, and is then ineffective", () => {
    for (const status of ["offline", "rebooting", "quarantined", "unknown"] as const) {
      expect(judged("reboot", { when: "false", status, now: END })).toBeNull();
      expect(judged("reboot", { when: "false", status, now: LAST - 1 })).toBeNull();
      expect(judged("reboot", { when: "false", status, now: LAST })).toBe("ineffective");
    }
    expect(judged("reboot", { when: "false", status: "maintenance", now: END })).toBe("verified");
  });

  test("a quarantine that nobody saw, when false is verified: the trouble is over", () => {
    expect(judged("quarantine", { when: "false", status: "online", now: END })).toBe("verified");
  });
});

describe("a record from before the step", () => {
  test.each(kinds)("says nothing of a %s, however good or bad it looks", (kind) => {
    for (const when of ["true", "false"] as const) {
      for (const status of NODE_STATUSES) {
        const stale = { isFresh: false, when, status, expect: "true" } as const;
        expect(judged(kind, stale, "…")).toBeNull();
        expect(judged(kind, { ...stale, now: UNSEEN - 1 }, "…")).toBeNull();
        expect(judged(kind, { ...stale, now: UNSEEN }, "…")).toBe("in_doubt");
      }
    }
  });
});

test("what can't be told is waited for as long again, and ten minutes at least", () => {
  const of = (minutes: number) => deadlines(sent("reboot"), { withinMs: minutes * MINUTE_MS, expect: null });
  expect(of(3)).toEqual({ end: NOON + 3 * MINUTE_MS, last: NOON + 13 * MINUTE_MS });
  expect(of(10)).toEqual({ end: NOON + 10 * MINUTE_MS, last: NOON + 20 * MINUTE_MS });
  expect(of(60)).toEqual({ end: NOON + 60 * MINUTE_MS, last: NOON + 120 * MINUTE_MS });
});

describe("of whatever is seen", () => {
  const three = fc.constantFrom("true" as const, "false" as const, "unknown" as const);
  const seen: fc.Arbitrary<Aftermath> = fc.record({
    now: fc.integer({ min: NOON, max: LAST - 1 }),
    isFresh: fc.boolean(),
    status: fc.constantFrom(...NODE_STATUSES),
    when: three,
    expect: fc.option(three, { nil: null }),
  });
  const verify = { withinMs: WITHIN, expect: null };

  test("before its last moment a step ends on a fresh record alone: never verified while when is true, ineffective only then", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), seen, (kind, all) => {
        const end = stepEnd(sent(kind), verify, all);
        if (end !== null) expect(all.isFresh).toBe(true);
        if (end === "verified") expect(all.when).not.toBe("true");
        if (end === "ineffective") expect(all.when).toBe("true");
      }),
      { numRuns: 2_000 },
    );
  });

  test("every step ends", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), seen, (kind, all) => {
        expect(stepEnd(sent(kind), verify, { ...all, now: UNSEEN })).not.toBeNull();
      }),
      { numRuns: 2_000 },
    );
  });
});
