import fc from "fast-check";
import { expect, test } from "vitest";
import { INACTIVE, restarted, rowOf, type Timer, type TimerRule } from "../../../src/policy/timers/timer.ts";
import { looksWith, mostlyNone, mostlyOne, newestOf, rules, seldom, step } from "./observations.ts";
import { type Look, type Shown, shownAfter } from "./timer-model.ts";

const RUNS = { numRuns: 2_000 };

/** In order; the same data may be looked at again, and may then even show something else. */
const looksOf = looksWith(mostlyOne, mostlyNone, seldom);
/** Every look at new data of one age. */
const freshLooks = looksWith(
  mostlyOne.map((step) => step + 1),
  fc.constant(0),
);

const follow = (looks: readonly Look[], rule: TimerRule): Timer[] => {
  let timer = INACTIVE;
  return looks.map((look) => {
    timer = step(timer, look, rule);
    return timer;
  });
};

const shown = ({ state, trueMs, clearMs, since }: Timer): Shown => {
  if (state === "lapsed") throw new Error("a timer lapsed");
  return { state, trueMs, clearMs, since };
};

test("the timer is at every look what the model reckons from all looks", () => {
  const anyStep = fc.oneof({ arbitrary: mostlyOne, weight: 9 }, { arbitrary: fc.constant(-2), weight: 1 });
  fc.assert(
    fc.property(looksWith(anyStep, mostlyNone, seldom), rules, (looks, rule) => {
      follow(looks, rule).forEach((timer, index) => {
        expect(shown(timer)).toEqual(shownAfter(looks.slice(0, index + 1), rule));
      });
    }),
    RUNS,
  );
});

test("with looks that never fail, it is Prometheus' own `for` and `keep_firing_for`", () => {
  fc.assert(
    fc.property(freshLooks, rules, (looks, sketch) => {
      const rule = { ...sketch, gapMsMax: Number.POSITIVE_INFINITY };
      const known = looks.filter(({ verdict }) => verdict !== "unknown");
      let [activeAt, falseSince, isFiring] = [Number.NaN, Number.NaN, false];
      const states = known.map(({ verdict, at }) => {
        if (verdict === "true") {
          falseSince = Number.NaN;
          if (Number.isNaN(activeAt)) activeAt = at;
          isFiring ||= at - activeAt >= rule.forMs;
        } else {
          if (Number.isNaN(falseSince)) falseSince = at;
          if (!isFiring || at - falseSince >= rule.clearForMs) [activeAt, isFiring] = [Number.NaN, false];
        }
        return isFiring ? "firing" : Number.isNaN(activeAt) ? "inactive" : "pending";
      });
      expect(follow(known, rule).map(({ state }) => state)).toEqual(states);
    }),
    RUNS,
  );
});

test("looking again changes nothing: neither at what was seen last, nor, while it runs, at anything seen before", () => {
  const places = fc.array(fc.tuple(fc.nat(40), fc.nat(40)), { maxLength: 12 });
  fc.assert(
    fc.property(looksOf, rules, places, (looks, rule, copies) => {
      const seen: Look[] = [];
      let timer = INACTIVE;
      for (const [index, look] of looks.entries()) {
        timer = step(timer, look, rule);
        if (look.verdict !== "unknown") seen.push(look);
        const latest = seen.at(-1);
        if (latest !== undefined) expect(shown(step(timer, latest, rule))).toEqual(shown(timer));
        for (const [place, which] of copies.filter(([place]) => place === index)) {
          const copy = seen[which % Math.max(1, seen.length)];
          const isOlder = copy !== undefined && timer.last !== null && newestOf(copy) < timer.last.newest;
          if (isOlder) expect(step(timer, copy, rule), `copy at ${place}`).toBe(timer);
        }
      }
      const doubled = looks.flatMap((look) => [look, look]);
      expect(follow(doubled, rule).map(shown).at(-1)).toEqual(follow(looks, rule).map(shown).at(-1));
    }),
    RUNS,
  );
});

test("time is never counted twice, nor ahead: what is true and what is false fit into what has passed", () => {
  fc.assert(
    fc.property(looksOf, rules, (looks, rule) => {
      let begin = 0;
      let before = INACTIVE;
      follow(looks, rule).forEach((timer, index) => {
        const look = looks[index]!;
        if (before.state === "inactive") begin = newestOf(look);
        if (timer.state !== "inactive") {
          const passed = newestOf(look) - begin;
          expect(timer.trueMs).toBeGreaterThanOrEqual(before.trueMs);
          expect(timer.clearMs === 0 || timer.clearMs >= before.clearMs).toBe(true);
          expect(timer.trueMs + timer.clearMs).toBeLessThanOrEqual(Math.max(0, passed));
          expect(timer.state === "firing").toBe(before.state === "firing" || timer.trueMs >= rule.forMs);
        }
        before = timer;
      });
    }),
    RUNS,
  );
});

test("a timer fires with a look that is true, and ends with one that is false: an unknown does neither", () => {
  fc.assert(
    fc.property(looksOf, rules, (looks, rule) => {
      let before = INACTIVE;
      follow(looks, rule).forEach((timer, index) => {
        const { verdict } = looks[index]!;
        if (timer.state === "firing" && before.state !== "firing") expect(verdict).toBe("true");
        if (timer.state === "inactive" && before.state !== "inactive") expect(verdict).toBe("false");
        if (verdict === "unknown") expect(shown(timer)).toEqual(shown(before));
        before = timer;
      });
    }),
    RUNS,
  );
});

/** Position, among the looks, of the first firing; and of the first end after it. Never: infinity. */
function milestones(timers: readonly Timer[]): { fires: number; ends: number } {
  const fires = timers.findIndex(({ state }) => state === "firing");
  const ends = fires < 0 ? -1 : timers.findIndex(({ state }, index) => index > fires && state === "inactive");
  const orNever = (index: number) => (index < 0 ? Number.POSITIVE_INFINITY : index);
  return { fires: orNever(fires), ends: orNever(ends) };
}

// A later firing may have another history behind it: the one that took longer to end has time left that the other lost.
test("unknowns never make a timer fire for the first time earlier than it would without them", () => {
  fc.assert(
    fc.property(looksOf, rules, (looks, rule) => {
      const isKnown = (_: unknown, index: number) => looks[index]!.verdict !== "unknown";
      const withThem = milestones(follow(looks, rule).filter(isKnown));
      const without = milestones(follow(looks.filter(isKnown), rule));
      expect(withThem.fires).toBeGreaterThanOrEqual(without.fires);
      if (withThem.fires === without.fires) expect(withThem.ends).toBeGreaterThanOrEqual(without.ends);
    }),
    RUNS,
  );
});

test("a restart, wherever it comes, never makes a timer fire earlier than it would without it", () => {
  fc.assert(
    fc.property(freshLooks, rules, fc.nat(40), fc.integer({ min: -500, max: 500 }), (looks, rule, place, shift) => {
      let timer = INACTIVE;
      const timers = looks.map((look, index) => {
        if (index === place) {
          const row = rowOf("policy", "node", timer);
          timer = row === null ? INACTIVE : restarted(row);
        }
        const by = index < place ? 0 : shift;
        timer = step(timer, { ...look, at: look.at + by, newest: newestOf(look) + by }, rule);
        return timer;
      });
      const straight = follow(looks, rule);
      const [restartedOnce, without] = [milestones(timers), milestones(straight)];
      expect(restartedOnce.fires).toBeGreaterThanOrEqual(without.fires);
      if (restartedOnce.fires === without.fires) {
        expect(restartedOnce.ends).toBeGreaterThanOrEqual(without.ends);
      }
    }),
    RUNS,
  );
});
