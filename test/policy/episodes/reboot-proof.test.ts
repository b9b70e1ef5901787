import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../../src/base/duration.ts";
import { type RebootEvidence, rebootProof } from "../../../src/policy/episodes/verification.ts";

const POSTED = 1_000 * HOUR_MS;

const proof = (traces: Partial<RebootEvidence>) =>
  rebootProof({
    uptimeHoursBefore: 5,
    uptimeHoursNow: 5,
    status: "online",
    rebootingSeen: false,
    observedAt: POSTED + 1,
    postedAt: POSTED,
    ...traces,
  });

describe("a reboot is proved", () => {
  test("if uptime_hours fell to at most the time since the POST, but not if it stayed the same or rose", () => {
    expect(proof({ uptimeHoursNow: 0 })).toBe("uptime_fell");
    expect(proof({ uptimeHoursNow: 4, observedAt: POSTED + 4 * HOUR_MS })).toBe("uptime_fell");
    expect(proof({ uptimeHoursNow: 4, observedAt: null })).toBe("uptime_fell");
    expect(proof({ uptimeHoursNow: 5 })).toBe("none");
    expect(proof({ uptimeHoursNow: 6 })).toBe("none");
  });

  test("if the status rebooting was observed after the POST", () => {
    expect(proof({ rebootingSeen: true })).toBe("rebooting_seen");
    expect(proof({ rebootingSeen: true, uptimeHoursNow: null, observedAt: null })).toBe("rebooting_seen");
  });

  test("if the time of observation minus (uptime_hours + 1) h is after the POST", () => {
    const young = { uptimeHoursBefore: 0, uptimeHoursNow: 0 };
    expect(proof({ ...young, observedAt: POSTED + HOUR_MS })).toBe("none");
    expect(proof({ ...young, observedAt: POSTED + HOUR_MS + 1 })).toBe("boot_after_post");
    const older = { uptimeHoursBefore: null, uptimeHoursNow: 2 };
    expect(proof({ ...older, observedAt: POSTED + 3 * HOUR_MS })).toBe("none");
    expect(proof({ ...older, observedAt: POSTED + 3 * HOUR_MS + 1 })).toBe("boot_after_post");
  });
});

describe("nothing is proved", () => {
  test("by an uptime that is rounded to whole hours after one that was not", () => {
    expect(proof({ uptimeHoursBefore: 0.7, uptimeHoursNow: 0 })).toBe("none");
    expect(proof({ uptimeHoursBefore: 1.9, uptimeHoursNow: 0 })).toBe("uptime_fell");
  });

  test("by a recovery alone", () => {
    expect(proof({})).toBe("none");
  });

  test("if the uptime or the service's time is unknown", () => {
    expect(proof({ uptimeHoursNow: null, observedAt: POSTED + 99 * HOUR_MS })).toBe("none");
    expect(proof({ uptimeHoursNow: 5, observedAt: null })).toBe("none");
    expect(proof({ uptimeHoursNow: 5, postedAt: null })).toBe("none");
  });

  test("by a record that is not newer than the POST", () => {
    expect(proof({ uptimeHoursNow: 0, observedAt: POSTED })).toBe("none");
    expect(proof({ uptimeHoursNow: 0, observedAt: POSTED - HOUR_MS })).toBe("none");
  });

  test("by the uptime of a node that is not online, which some services state as 0", () => {
    expect(proof({ status: "offline", uptimeHoursNow: 0 })).toBe("none");
    expect(proof({ status: "unknown", uptimeHoursNow: 0, observedAt: POSTED + 99 * HOUR_MS })).toBe("none");
    expect(proof({ status: "offline", uptimeHoursNow: 0, rebootingSeen: true })).toBe("rebooting_seen");
  });

  test("by a fall to more hours than have passed since the POST, because the detail and the list round differently", () => {
    expect(proof({ uptimeHoursNow: 4 })).toBe("none");
    expect(proof({ uptimeHoursNow: 4, observedAt: POSTED + 3 * HOUR_MS })).toBe("none");
  });

  test("of a reboot that did not happen, in any sequence of events", () => {
    // Boots before the node was read last, and perhaps one after the POST: what uptime_hours shows is floored.
    const truth = fc.record({
      bootedMs: fc.nat({ max: 60 * HOUR_MS }),
      rebootMs: fc.option(fc.nat({ max: 60 * HOUR_MS }), { nil: null }),
      observedMs: fc.integer({ min: -HOUR_MS, max: 60 * HOUR_MS }),
    });
    let proved = 0;
    fc.assert(
      fc.property(truth, ({ bootedMs, rebootMs, observedMs }) => {
        const firstBoot = POSTED - bootedMs;
        const observedAt = POSTED + observedMs;
        const reboot = rebootMs === null || POSTED + rebootMs > observedAt ? null : POSTED + rebootMs;
        const boot = reboot ?? firstBoot;
        const found = rebootProof({
          uptimeHoursBefore: Math.floor((POSTED - firstBoot) / HOUR_MS),
          uptimeHoursNow: observedAt < boot ? null : Math.floor((observedAt - boot) / HOUR_MS),
          status: "online",
          rebootingSeen: false,
          observedAt,
          postedAt: POSTED,
        });
        if (found !== "none") proved++;
        if (reboot === null) expect(found).toBe("none");
      }),
      { numRuns: 5_000 },
    );
    expect(proved).toBeGreaterThan(500);
  });
});
