import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { INACTIVE, observeCondition, type Timer, type TimerDurations } from "../../../src/policy/timer.ts";
import { type DetailFreshness, nextUsefulReadAt } from "../../../src/remediation/evaluation/detail-demand.ts";

const spec: TimerDurations = { forMs: 30 * MINUTE_MS, clearForMs: 20 * MINUTE_MS, gapMsMax: 3 * HOUR_MS };

/** A timer after observations at some minutes. */
const timerAfterObservations = (
  ...observations: readonly [minute: number, verdict: "true" | "false" | "unknown"][]
): Timer =>
  observations.reduce((timer, [minute, verdict]) => {
    const at = minute * MINUTE_MS;
    return observeCondition(timer, { verdict, at, newest: at, now: at }, spec);
  }, INACTIVE);

/** The minute of the next useful read after one at `minute`. */
const nextReadMinute = (timer: Timer, minute: number, age: Partial<DetailFreshness> = {}) =>
  nextUsefulReadAt(timer, spec, { observedAt: minute * MINUTE_MS, maxAgeMs: 3 * HOUR_MS, roundMs: HOUR_MS, ...age }) /
  MINUTE_MS;

describe("the next useful read of a detail", () => {
  test("for a pending timer is when `for` is over and makes it fire", () => {
    const pending = timerAfterObservations([0, "true"], [10, "true"]);
    expect(nextReadMinute(pending, 10)).toBe(30);
    expect(timerAfterObservations([0, "true"], [10, "true"], [29.9, "true"]).state).toBe("pending");
    expect(timerAfterObservations([0, "true"], [10, "true"], [30, "true"]).state).toBe("firing");
  });

  test("for a clearing timer is when `clear_for` is over and ends it", () => {
    const clearing = timerAfterObservations([0, "true"], [30, "true"], [40, "false"], [45, "false"]);
    expect(nextReadMinute(clearing, 45)).toBe(60);
    expect(timerAfterObservations([0, "true"], [30, "true"], [40, "false"], [45, "false"], [60, "false"])).toBe(
      INACTIVE,
    );
  });

  test("for a firing timer is due twice in a round, and for an unknown verdict four times", () => {
    expect(nextReadMinute(timerAfterObservations([0, "true"], [30, "true"]), 30)).toBe(60);
    expect(nextReadMinute(timerAfterObservations([0, "true"], [10, "unknown"]), 10)).toBe(25);
  });

  test("is before the detail becomes too old for the policy", () => {
    expect(nextReadMinute(timerAfterObservations([0, "true"]), 0, { maxAgeMs: 20 * MINUTE_MS })).toBe(15);
  });

  test("is immediate if nothing was read since the start", () => {
    const restarted: Timer = { ...timerAfterObservations([0, "true"]), last: null };
    expect(nextReadMinute(restarted, 10)).toBe(Number.NEGATIVE_INFINITY);
    expect(nextReadMinute(timerAfterObservations([0, "true"]), 0, { observedAt: Number.NaN })).toBe(
      Number.NEGATIVE_INFINITY,
    );
  });

  test("does not exist for an inactive timer", () => {
    expect(nextReadMinute(INACTIVE, 0)).toBe(Number.POSITIVE_INFINITY);
  });
});
