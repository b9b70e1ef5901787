import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  INACTIVE,
  nextTimerState,
  type Timer,
  type TimerDurations,
  type TimerEvent,
} from "../../../src/policy/timer.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { durations, mostlyNone, observationsWith, observeStep, onceInTen } from "./observations.ts";
import type { ModelObservation } from "./timer-model.ts";

const PROPERTY_RUNS = propertyRuns(2_000);
/** Number of runs, high enough for rare transitions to occur. */
const COVERING_RUNS = { numRuns: 2_000 };

describe("when evaluations may be unknown for a long time", () => {
  /** One observation per time unit, on both clocks. */
  const observationLists = observationsWith(fc.constant(1), mostlyNone, onceInTen, 1);
  /** Events that an observation can cause, by its verdict. */
  const eventsOf: Readonly<Record<ModelObservation["verdict"], readonly TimerEvent[]>> = {
    true: ["true", "proven"],
    false: ["false", "cleared"],
    unknown: ["unknown"],
  };

  /** Calls `check` with each observation, the timer before and after it, and for how long the verdict was unknown. */
  function walk(
    observations: readonly ModelObservation[],
    durations: TimerDurations,
    check: (observation: ModelObservation, before: Timer, after: Timer, unknownForMs: number) => void,
  ): void {
    let timer = INACTIVE;
    let unknownSince = Number.NaN;
    for (const observation of observations) {
      const before = timer;
      timer = observeStep(timer, observation, durations);
      check(observation, before, timer, Number.isNaN(unknownSince) ? 0 : observation.now - unknownSince);
      const isKnown = observation.verdict !== "unknown" || observation.isFrozen === true;
      if (isKnown || timer.state === "inactive") unknownSince = Number.NaN;
      else if (Number.isNaN(unknownSince) || timer.unknownSince === observation.now) unknownSince = observation.now;
    }
  }

  test("every state change is in the transition table; a timer that was unknown for too long is unseen first", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(observationLists, durations, (observations, durations) => {
        walk(observations, durations, (observation, before, after, unknownForMs) => {
          const isUnseen = observation.isFrozen !== true && unknownForMs > durations.gapMsMax + durations.forMs;
          const from = isUnseen ? nextTimerState(before.state, "unseen") : before.state;
          const possible = eventsOf[observation.verdict].map((event) => nextTimerState(from, event));
          expect(possible).toContain(after.state);
          seen.add(`${before.state} ${after.state}`);
        });
      }),
      COVERING_RUNS,
    );
    // The random walks covered every transition of the drawing.
    const transitions = ["inactive pending", "pending firing", "firing lapsed", "lapsed firing", "lapsed inactive"];
    expect([...seen]).toEqual(expect.arrayContaining([...transitions, "pending inactive", "firing inactive"]));
  });

  test("a lapsed timer fires only after `when` was true for `for` since it lapsed", () => {
    fc.assert(
      fc.property(observationLists, durations, (observations, durations) => {
        let trueSince = Number.POSITIVE_INFINITY;
        walk(observations, durations, (observation, before, after) => {
          if (observation.verdict === "false") trueSince = Number.POSITIVE_INFINITY;
          if (before.state !== "lapsed" && after.state === "lapsed") trueSince = Number.POSITIVE_INFINITY;
          if (observation.verdict === "true") trueSince = Math.min(trueSince, observation.newest);
          if (before.state === "lapsed" && after.state === "firing") {
            expect(observation.newest - trueSince).toBeGreaterThanOrEqual(durations.forMs);
          }
        });
      }),
      PROPERTY_RUNS,
    );
  });

  test("no timer is pending or firing after `when` was unknown for longer than max_age + for", () => {
    fc.assert(
      fc.property(observationLists, durations, (observations, durations) => {
        walk(observations, durations, (observation, _, after, unknownForMs) => {
          if (observation.verdict !== "unknown" || observation.isFrozen === true) return;
          if (unknownForMs > durations.gapMsMax + durations.forMs)
            expect(["inactive", "lapsed"]).toContain(after.state);
        });
      }),
      PROPERTY_RUNS,
    );
  });
});
