import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import {
  evaluateStep,
  type StepObservation,
  stepDeadlines,
  UNOBSERVED_MS_MAX,
} from "../../../src/policy/episodes/verification.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { NOON } from "../guard-case.ts";

const WITHIN = 15 * MINUTE_MS;
const END = NOON + WITHIN;
/** When an unknown result becomes final. */
const EXTENDED_END = END + WITHIN;
/** When a step is given up if its node was not seen since. */
const UNOBSERVED_END = END + UNOBSERVED_MS_MAX;

const requests = {
  disconnect: { kind: "disconnect" },
  reboot: { kind: "reboot", force: false },
  quarantine: { kind: "quarantine", reason: "", durationMinutes: 60 },
} as const satisfies Record<string, Action["request"]>;
type Kind = keyof typeof requests;

const sentAction = (kind: Kind): Action =>
  actionOf(1, "ep-1", { request: requests[kind], state: "sent", sentAt: NOON, endedAt: null, outcome: null });

/** Evaluates a step of 15 minutes; by default a minute after it was sent, on a fresh record. */
const stepResultOf = (kind: Kind, seen: Partial<StepObservation>, expect: string | null = null) =>
  evaluateStep(
    sentAction(kind),
    { withinMs: WITHIN, expect },
    { now: NOON + MINUTE_MS, isFresh: true, status: "online", hasReported: true, when: "false", expect: null, ...seen },
  );

const kinds = ["disconnect", "reboot", "quarantine"] as const;

describe("a step ends after `within`, or as soon as `expect` holds", () => {
  test.each(kinds)("%s: not before `within` while `expect` does not hold", (kind) => {
    for (const expected of ["false", "unknown"] as const) {
      for (const when of ["true", "false", "unknown"] as const) {
        const seen = { expect: expected, when, status: "offline" } as const;
        expect(stepResultOf(kind, { ...seen, now: END - 1 }, "…")).toBeNull();
      }
      expect(stepResultOf(kind, { expect: expected, when: "true", status: "offline", now: END }, "…")).toBe(
        "ineffective",
      );
      expect(stepResultOf(kind, { expect: expected, when: "false", now: END }, "…")).toBe("verified");
    }
  });

  test.each(kinds)("%s: as soon as `expect` holds, with the result by `when`", (kind) => {
    expect(stepResultOf(kind, { expect: "true", when: "false" }, "…")).toBe("verified");
    expect(stepResultOf(kind, { expect: "true", when: "true" }, "…")).toBe("ineffective");
    expect(stepResultOf(kind, { expect: "true", when: "unknown" }, "…")).toBeNull();
  });
});

describe("the default expect", () => {
  test("of a reboot: when is false, and the node is online and has reported since", () => {
    expect(stepResultOf("reboot", { when: "false", status: "online" })).toBe("verified");
    expect(stepResultOf("reboot", { when: "false", status: "online", hasReported: false })).toBeNull();
    expect(stepResultOf("reboot", { when: "false", hasReported: false, now: END })).toBe("verified");
    expect(stepResultOf("reboot", { when: "false", status: "rebooting" })).toBeNull();
    expect(stepResultOf("reboot", { when: "true", status: "online" })).toBeNull();
    expect(stepResultOf("reboot", { when: "unknown", status: "online" })).toBeNull();
  });

  test("of a quarantine: the status is quarantined", () => {
    expect(stepResultOf("quarantine", { when: "false", status: "quarantined" })).toBe("verified");
    expect(stepResultOf("quarantine", { when: "false", status: "online" })).toBeNull();
    expect(stepResultOf("quarantine", { when: "true", status: "offline" })).toBeNull();
  });

  test("of a disconnect: when is false", () => {
    expect(stepResultOf("disconnect", { when: "false", status: "offline" })).toBe("verified");
    expect(stepResultOf("disconnect", { when: "true" })).toBeNull();
    expect(stepResultOf("disconnect", { when: "unknown" })).toBeNull();
  });
});

describe("ended with", () => {
  test.each(kinds)("when false, a %s is verified", (kind) => {
    expect(stepResultOf(kind, { when: "false", now: END })).toBe("verified");
  });

  test.each(kinds)("when true, a %s is ineffective", (kind) => {
    expect(stepResultOf(kind, { when: "true", now: END })).toBe("ineffective");
  });

  test("when true during our quarantine, the quarantine is ineffective as soon as it is observed", () => {
    expect(stepResultOf("quarantine", { when: "true", status: "quarantined" })).toBe("ineffective");
  });

  test("when unknown during our quarantine, the quarantine is verified", () => {
    expect(stepResultOf("quarantine", { when: "unknown", status: "quarantined" })).toBe("verified");
  });

  test.each(kinds)("when unknown, a %s is extended and then in doubt", (kind) => {
    expect(stepResultOf(kind, { when: "unknown", now: END })).toBeNull();
    expect(stepResultOf(kind, { when: "unknown", now: EXTENDED_END - 1 })).toBeNull();
    expect(stepResultOf(kind, { when: "unknown", now: EXTENDED_END })).toBe("in_doubt");
  });

  test("when false and the node not back, a reboot is extended and then ineffective", () => {
    for (const status of ["offline", "rebooting", "quarantined", "unknown"] as const) {
      expect(stepResultOf("reboot", { when: "false", status, now: END })).toBeNull();
      expect(stepResultOf("reboot", { when: "false", status, now: EXTENDED_END - 1 })).toBeNull();
      expect(stepResultOf("reboot", { when: "false", status, now: EXTENDED_END })).toBe("ineffective");
    }
    expect(stepResultOf("reboot", { when: "false", status: "maintenance", now: END })).toBe("verified");
  });

  test("when false, a quarantine that was not observed is verified", () => {
    expect(stepResultOf("quarantine", { when: "false", status: "online", now: END })).toBe("verified");
  });
});

describe("a record from before the step", () => {
  test.each(kinds)("does not affect a %s", (kind) => {
    for (const when of ["true", "false"] as const) {
      for (const status of NODE_STATUSES) {
        const stale = { isFresh: false, when, status, expect: "true" } as const;
        expect(stepResultOf(kind, stale, "…")).toBeNull();
        expect(stepResultOf(kind, { ...stale, now: UNOBSERVED_END - 1 }, "…")).toBeNull();
        expect(stepResultOf(kind, { ...stale, now: UNOBSERVED_END }, "…")).toBe("in_doubt");
      }
    }
  });
});

test("an unknown result extends the step by `within`, at least ten minutes", () => {
  const of = (minutes: number) => stepDeadlines(sentAction("reboot"), { withinMs: minutes * MINUTE_MS, expect: null });
  expect(of(3)).toEqual({ end: NOON + 3 * MINUTE_MS, last: NOON + 13 * MINUTE_MS });
  expect(of(10)).toEqual({ end: NOON + 10 * MINUTE_MS, last: NOON + 20 * MINUTE_MS });
  expect(of(60)).toEqual({ end: NOON + 60 * MINUTE_MS, last: NOON + 120 * MINUTE_MS });
});

describe("for any observations", () => {
  const three = fc.constantFrom("true" as const, "false" as const, "unknown" as const);
  const seen: fc.Arbitrary<StepObservation> = fc.record({
    now: fc.integer({ min: NOON, max: EXTENDED_END - 1 }),
    isFresh: fc.boolean(),
    status: fc.constantFrom(...NODE_STATUSES),
    hasReported: fc.boolean(),
    when: three,
    expect: fc.option(three, { nil: null }),
  });
  const verify = { withinMs: WITHIN, expect: null };

  test("a step ends on a fresh record before its last deadline, and is ineffective exactly if `when` is true", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), seen, (kind, all) => {
        const end = evaluateStep(sentAction(kind), verify, all);
        if (end !== null) expect(all.isFresh).toBe(true);
        if (end === "verified") expect(all.when).not.toBe("true");
        if (end === "ineffective") expect(all.when).toBe("true");
      }),
      propertyRuns(2_000),
    );
  });

  test("every step ends", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), seen, (kind, all) => {
        expect(evaluateStep(sentAction(kind), verify, { ...all, now: UNOBSERVED_END })).not.toBeNull();
      }),
      propertyRuns(2_000),
    );
  });
});
