import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { INACTIVE, TIMER_STATES, type Timer, type TimerEvent, type TimerRule } from "../../../src/policy/timers/timer.ts";
import { looksWith, mostlyNone, newestOf, rules, seldom, step } from "./observations.ts";
import type { Look } from "./timer-model.ts";

const RUNS = { numRuns: 2_000 };

describe("where looks may fail for long", () => {
  /** A look a moment, on both clocks. */
  const longLooks = looksWith(fc.constant(1), mostlyNone, seldom, 1);
  /** Events that a look can be, by what it shows. */
  const eventsOf: Readonly<Record<Look["verdict"], readonly TimerEvent[]>> = {
    true: ["true", "proven"],
    false: ["false", "cleared"],
    unknown: ["unknown"],
  };

  /** Calls `check` with each look, the timer before and after it, and since when nothing was known. */
  function walk(
    looks: readonly Look[],
    rule: TimerRule,
    check: (look: Look, before: Timer, after: Timer, unknownForMs: number) => void,
  ): void {
    let timer = INACTIVE;
    let unknownSince = Number.NaN;
    for (const look of looks) {
      const before = timer;
      timer = step(timer, look, rule);
      check(look, before, timer, Number.isNaN(unknownSince) ? 0 : look.now - unknownSince);
      const isKnown = look.verdict !== "unknown" || look.isFrozen === true;
      if (isKnown || timer.state === "inactive") unknownSince = Number.NaN;
      else if (Number.isNaN(unknownSince) || timer.unknownSince === look.now) unknownSince = look.now;
    }
  }

  test("every step is one of the table: the look's own, or the timer is unseen first", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(longLooks, rules, (looks, rule) => {
        walk(looks, rule, (look, before, after, unknownForMs) => {
          const isUnseen = look.isFrozen !== true && unknownForMs > rule.gapMsMax + rule.forMs;
          const from = isUnseen ? TIMER_STATES[before.state].unseen : before.state;
          const possible = eventsOf[look.verdict].map((event) => TIMER_STATES[from][event]);
          expect(possible).toContain(after.state);
          seen.add(`${before.state} ${after.state}`);
        });
      }),
      RUNS,
    );
    // Every way that the drawing shows was walked.
    const ways = ["inactive pending", "pending firing", "firing lapsed", "lapsed firing", "lapsed inactive"];
    expect([...seen]).toEqual(expect.arrayContaining([...ways, "pending inactive", "firing inactive"]));
  });

  test("a timer that lapsed fires only after it was true for `for` since then", () => {
    fc.assert(
      fc.property(longLooks, rules, (looks, rule) => {
        let trueSince = Number.POSITIVE_INFINITY;
        walk(looks, rule, (look, before, after) => {
          if (look.verdict === "false") trueSince = Number.POSITIVE_INFINITY;
          if (before.state !== "lapsed" && after.state === "lapsed") trueSince = Number.POSITIVE_INFINITY;
          if (look.verdict === "true") trueSince = Math.min(trueSince, newestOf(look));
          if (before.state === "lapsed" && after.state === "firing") {
            expect(newestOf(look) - trueSince).toBeGreaterThanOrEqual(rule.forMs);
          }
        });
      }),
      RUNS,
    );
  });

  test("no timer fires, or is pending, while nothing is known for longer than max_age + for", () => {
    fc.assert(
      fc.property(longLooks, rules, (looks, rule) => {
        walk(looks, rule, (look, _, after, unknownForMs) => {
          if (look.verdict !== "unknown" || look.isFrozen === true) return;
          if (unknownForMs > rule.gapMsMax + rule.forMs) expect(["inactive", "lapsed"]).toContain(after.state);
        });
      }),
      RUNS,
    );
  });
});
