import fc from "fast-check";
import { observeCondition, type Timer, type TimerDurations } from "../../../src/policy/timer.ts";
import type { ModelObservation } from "./timer-model.ts";

/** Rules of a few moments. */
export const durations: fc.Arbitrary<TimerDurations> = fc.record({
  forMs: fc.nat(12),
  clearForMs: fc.nat(8),
  gapMsMax: fc.integer({ min: 1, max: 5 }),
});

/** Long runs of one verdict, so that timers fire. */
const verdicts = fc
  .array(
    fc.record({
      verdict: fc.constantFrom("true" as const, "true" as const, "false" as const, "unknown" as const),
      length: fc.integer({ min: 1, max: 8 }),
    }),
    { maxLength: 12 },
  )
  .map((runs) => runs.flatMap(({ verdict, length }) => Array.from({ length }, () => verdict)))
  .filter((all) => all.length <= 40);

/** The journal's clock stands nearly still: no timer is unseen for long. */
const SLOW_CLOCK_RATE = 1e-6;

/** Observations whose newest value is newer by `step`, and the oldest is up to `lag` older than it. */
export const observationsWith = (
  step: fc.Arbitrary<number>,
  lag: fc.Arbitrary<number>,
  frozen: fc.Arbitrary<boolean> = fc.constant(false),
  clockRate = SLOW_CLOCK_RATE,
) =>
  verdicts.chain((all) =>
    fc
      .tuple(...all.map((verdict) => fc.record({ verdict: fc.constant(verdict), step, lag, isFrozen: frozen })))
      .map((parts): ModelObservation[] => {
        let newest = 100;
        return parts.map(({ verdict, step: by, lag: behind, isFrozen }, index) => {
          newest += by;
          return { verdict, at: newest - behind, newest, now: 1_000 + index * clockRate, isFrozen };
        });
      }),
  );

/** Time between observations: mostly one unit. */
export const mostlyOneStep = fc.oneof({ arbitrary: fc.constant(1), weight: 6 }, { arbitrary: fc.nat(7), weight: 1 });
/** Ages of the oldest datum, which are mostly 0. */
export const mostlyNone = fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, { arbitrary: fc.nat(4), weight: 1 });
/** True in one of ten cases. */
export const onceInTen = fc.integer({ min: 0, max: 9 }).map((value) => value === 0);

/** Returns the timer after an observation. */
export const observeStep = (timer: Timer, observation: ModelObservation, durations: TimerDurations) =>
  observeCondition(timer, observation, durations, { clearFrozen: observation.isFrozen === true });
