import fc from "fast-check";
import { expect, test } from "vitest";
import { INACTIVE, restoreTimer, type Timer, type TimerDurations, toTimerRow } from "../../../src/policy/timer.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { durations, mostlyNone, mostlyOneStep, observationsWith, observeStep, onceInTen } from "./observations.ts";
import { type ModelObservation, modelTimerAfter, type TimerView } from "./timer-model.ts";

const PROPERTY_RUNS = propertyRuns(2_000);

/** Observations in order; the same data may be observed again, even with another verdict. */
const observationsFor = observationsWith(mostlyOneStep, mostlyNone, onceInTen);
/** Observations that all have new data of one age. */
const freshObservations = observationsWith(
  mostlyOneStep.map((step) => step + 1),
  fc.constant(0),
);

const timersAfter = (observations: readonly ModelObservation[], durations: TimerDurations): Timer[] => {
  let timer = INACTIVE;
  return observations.map((observation) => {
    timer = observeStep(timer, observation, durations);
    return timer;
  });
};

const timerView = ({ state, trueMs, clearMs, since }: Timer): TimerView => {
  if (state === "lapsed") throw new Error("a timer lapsed");
  return { state, trueMs, clearMs, since };
};

test("after every observation the timer equals a model computed from all observations", () => {
  const anyStep = fc.oneof({ arbitrary: mostlyOneStep, weight: 9 }, { arbitrary: fc.constant(-2), weight: 1 });
  fc.assert(
    fc.property(observationsWith(anyStep, mostlyNone, onceInTen), durations, (observations, durations) => {
      timersAfter(observations, durations).forEach((timer, index) => {
        expect(timerView(timer)).toEqual(modelTimerAfter(observations.slice(0, index + 1), durations));
      });
    }),
    PROPERTY_RUNS,
  );
});

test("with observations that never fail, the timer behaves like Prometheus' `for` and `keep_firing_for`", () => {
  fc.assert(
    fc.property(freshObservations, durations, (observations, sketch) => {
      const durations = { ...sketch, gapMsMax: Number.POSITIVE_INFINITY };
      const known = observations.filter(({ verdict }) => verdict !== "unknown");
      let [activeAt, falseSince, isFiring] = [Number.NaN, Number.NaN, false];
      const states = known.map(({ verdict, at }) => {
        if (verdict === "true") {
          falseSince = Number.NaN;
          if (Number.isNaN(activeAt)) activeAt = at;
          isFiring ||= at - activeAt >= durations.forMs;
        } else {
          if (Number.isNaN(falseSince)) falseSince = at;
          if (!isFiring || at - falseSince >= durations.clearForMs) [activeAt, isFiring] = [Number.NaN, false];
        }
        return isFiring ? "firing" : Number.isNaN(activeAt) ? "inactive" : "pending";
      });
      expect(timersAfter(known, durations).map(({ state }) => state)).toEqual(states);
    }),
    PROPERTY_RUNS,
  );
});

test("repeating the last observation, or any earlier one while the timer runs, changes nothing", () => {
  const places = fc.array(fc.tuple(fc.nat(40), fc.nat(40)), { maxLength: 12 });
  fc.assert(
    fc.property(observationsFor, durations, places, (observations, durations, copies) => {
      const seen: ModelObservation[] = [];
      let timer = INACTIVE;
      for (const [index, observation] of observations.entries()) {
        timer = observeStep(timer, observation, durations);
        if (observation.verdict !== "unknown") seen.push(observation);
        const latest = seen.at(-1);
        if (latest !== undefined) expect(timerView(observeStep(timer, latest, durations))).toEqual(timerView(timer));
        for (const [place, which] of copies.filter(([place]) => place === index)) {
          const copy = seen[which % Math.max(1, seen.length)];
          const isOlder = copy !== undefined && timer.last !== null && copy.newest < timer.last.newest;
          if (isOlder) expect(observeStep(timer, copy, durations), `copy at ${place}`).toBe(timer);
        }
      }
      const doubled = observations.flatMap((observation) => [observation, observation]);
      expect(timersAfter(doubled, durations).map(timerView).at(-1)).toEqual(
        timersAfter(observations, durations).map(timerView).at(-1),
      );
    }),
    PROPERTY_RUNS,
  );
});

test("time is never counted twice or in advance: the counts fit into the time that has passed", () => {
  fc.assert(
    fc.property(observationsFor, durations, (observations, durations) => {
      let begin = 0;
      let before = INACTIVE;
      timersAfter(observations, durations).forEach((timer, index) => {
        const observation = observations[index]!;
        if (before.state === "inactive") begin = observation.newest;
        if (timer.state !== "inactive") {
          const passed = observation.newest - begin;
          expect(timer.trueMs === 0 || timer.trueMs >= before.trueMs).toBe(true);
          expect(timer.clearMs === 0 || timer.clearMs >= before.clearMs).toBe(true);
          expect(timer.trueMs + timer.clearMs).toBeLessThanOrEqual(Math.max(0, passed));
          expect(timer.state === "firing").toBe(before.state === "firing" || timer.trueMs >= durations.forMs);
        }
        before = timer;
      });
    }),
    PROPERTY_RUNS,
  );
});

test("a timer fires with a true observation and ends with a false one, never with an unknown one", () => {
  fc.assert(
    fc.property(observationsFor, durations, (observations, durations) => {
      let before = INACTIVE;
      timersAfter(observations, durations).forEach((timer, index) => {
        const { verdict } = observations[index]!;
        if (timer.state === "firing" && before.state !== "firing") expect(verdict).toBe("true");
        if (timer.state === "inactive" && before.state !== "inactive") expect(verdict).toBe("false");
        if (verdict === "unknown") expect(timerView(timer)).toEqual(timerView(before));
        before = timer;
      });
    }),
    PROPERTY_RUNS,
  );
});

/** Index of the observation that made the timer fire first, and of the first end after it; Infinity: never. */
function firstFiringAndEnd(timers: readonly Timer[]): { fires: number; ends: number } {
  const fires = timers.findIndex(({ state }) => state === "firing");
  const ends = fires < 0 ? -1 : timers.findIndex(({ state }, index) => index > fires && state === "inactive");
  const orNever = (index: number) => (index < 0 ? Number.POSITIVE_INFINITY : index);
  return { fires: orNever(fires), ends: orNever(ends) };
}

// A later firing may have another history behind it: the one that took longer to end has time left that the other lost.
test("unknown observations never make a timer fire earlier", () => {
  fc.assert(
    fc.property(observationsFor, durations, (observations, durations) => {
      const isKnown = (_: unknown, index: number) => observations[index]!.verdict !== "unknown";
      const withThem = firstFiringAndEnd(timersAfter(observations, durations).filter(isKnown));
      const without = firstFiringAndEnd(timersAfter(observations.filter(isKnown), durations));
      expect(withThem.fires).toBeGreaterThanOrEqual(without.fires);
      if (withThem.fires === without.fires) expect(withThem.ends).toBeGreaterThanOrEqual(without.ends);
    }),
    PROPERTY_RUNS,
  );
});

test("a restart at any time never makes a timer fire earlier", () => {
  fc.assert(
    fc.property(
      freshObservations,
      durations,
      fc.nat(40),
      fc.integer({ min: -500, max: 500 }),
      (observations, durations, place, shift) => {
        let timer = INACTIVE;
        const timers = observations.map((observation, index) => {
          if (index === place) {
            const row = toTimerRow("policy", "node", timer);
            timer = row === null ? INACTIVE : restoreTimer(row);
          }
          const by = index < place ? 0 : shift;
          timer = observeStep(
            timer,
            { ...observation, at: observation.at + by, newest: observation.newest + by },
            durations,
          );
          return timer;
        });
        const straight = timersAfter(observations, durations);
        const [restartedOnce, without] = [firstFiringAndEnd(timers), firstFiringAndEnd(straight)];
        expect(restartedOnce.fires).toBeGreaterThanOrEqual(without.fires);
        if (restartedOnce.fires === without.fires) {
          expect(restartedOnce.ends).toBeGreaterThanOrEqual(without.ends);
        }
      },
    ),
    PROPERTY_RUNS,
  );
});
