import fc from "fast-check";
import { createTask } from "node-cron";
import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { cronError, nextCronTime } from "../../src/platform/cron.ts";

/** Returns the first run after a time, both as ISO text. */
function nextRunAfter(expression: string, after: string): string | null {
  const next = nextCronTime(expression, Date.parse(after));
  return next === null ? null : new Date(next).toISOString().replace(".000Z", "Z");
}

describe("the next run", () => {
  test.each([
    // expression, after, next
    ["2 * * * *", "2026-11-21T05:01:59.999Z", "2026-11-21T05:02:00Z"],
    ["2 * * * *", "2026-11-21T05:02:00.000Z", "2026-11-21T06:02:00Z"],
    ["2 * * * *", "2026-11-21T05:02:00.001Z", "2026-11-21T06:02:00Z"],
    ["*/15 * * * *", "2026-11-21T23:59:00Z", "2026-11-22T00:00:00Z"],
    ["0 0 1 1 *", "2026-11-21T05:00:00Z", "2027-01-01T00:00:00Z"],
    ["@hourly", "2026-11-21T05:00:00Z", "2026-11-21T06:00:00Z"],
    ["30 4 * * MON", "2026-11-21T05:00:00Z", "2026-11-23T04:30:00Z"],
    ["0 0 * * 7", "2026-11-21T05:00:00Z", "2026-11-22T00:00:00Z"],
    ["0 22-2 * * *", "2026-11-21T23:30:00Z", "2026-11-22T00:00:00Z"],
    ["0 0 L * *", "2027-02-01T00:00:00Z", "2027-02-28T00:00:00Z"],
    ["0 0 * * 1#5", "2026-12-01T00:00:00Z", "2027-03-29T00:00:00Z"],
    ["0 0 29 2 *", "2026-11-21T05:00:00Z", "2028-02-29T00:00:00Z"],
    ["0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"],
    // six fields: seconds first
    ["30 2 * * * *", "2026-11-21T05:02:29Z", "2026-11-21T05:02:30Z"],
    ["*/10 * * * * *", "2026-11-21T05:59:50Z", "2026-11-21T06:00:00Z"],
    ["* * * * * *", "2026-12-31T23:59:59.500Z", "2027-01-01T00:00:00Z"],
    // the 13th that is a Friday: both must fit
    ["0 0 13 * 5", "2026-11-21T00:00:00Z", "2027-08-13T00:00:00Z"],
  ])("of %s after %s is %s", (expression, after, next) => {
    expect(nextRunAfter(expression, after)).toBe(next);
  });

  test("is null if there is none within eight years", () => {
    // The leap day is a Monday in 2044, and then not before 2072.
    expect(nextRunAfter("0 0 29 2 1", "2044-03-01T00:00:00Z")).toBeNull();
    expect(nextRunAfter("0 0 29 2 1", "2043-01-01T00:00:00Z")).toBe("2044-02-29T00:00:00Z");
  });

  test("is the first matching second, for any expression", () => {
    const list = (min: number, max: number) =>
      fc.oneof(
        fc.constant("*"),
        fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((values) => values.join(",")),
        fc.integer({ min: 2, max: 20 }).map((step) => `*/${step}`),
      );
    // Days and months stay free, so that a search second by second ends within three days.
    const expressions = fc.tuple(list(0, 59), list(0, 59), list(0, 23)).map((fields) => `${fields.join(" ")} * * *`);
    const start = Date.parse("2026-12-31T20:00:00Z");
    fc.assert(
      fc.property(expressions, fc.integer({ min: 0, max: 6 * 3_600_000 }), (expression, offsetMs) => {
        const after = start + offsetMs;
        const found = nextCronTime(expression, after)!;
        expect(found).toBeGreaterThan(after);
        expect(found % SECOND_MS).toBe(0);
        const task = createTask(expression, () => {}, { timezone: "UTC" });
        task.destroy();
        expect(task.match(new Date(found))).toBe(true);
        // Nothing in between: the next run after any time before it is the same one.
        for (const share of [0.1, 0.5, 0.9]) {
          expect(nextCronTime(expression, Math.floor(after + (found - after - 1) * share))).toBe(found);
        }
        for (
          let at = Math.ceil((after + 1) / SECOND_MS) * SECOND_MS, queriesMade = 0;
          at < found && queriesMade < 90;
          queriesMade++
        ) {
          expect(task.match(new Date(at))).toBe(false);
          at += queriesMade < 60 ? SECOND_MS : MINUTE_MS;
        }
      }),
      { numRuns: 60 },
    );
  });

  test("of an invalid expression is an error", () => {
    expect(() => nextCronTime("61 * * * *", 0)).toThrow("61");
  });
});

describe("the problem of an expression", () => {
  test.each(["2 * * * *", "*/5 1-3 * * MON-FRI", "0 0 29 2 *", "0 0 29 2 1", "15 30 4 L * *", "@daily"])(
    "is none for %s",
    (expression) => {
      expect(cronError(expression)).toBeNull();
    },
  );

  test.each([
    ["61 * * * *", "61 is not a valid minute"],
    ["99 99 * * *", "99 is not a valid minute; 99 is not a valid hour"],
    ["* * *", "expected 5 or 6 fields but got 3"],
    ["", "pattern includes illegal characters"],
    ["0 0 30 2 *", "30 2 is an impossible day of month"],
    ["0 0 L-30 2 *", "it names a day that never occurs"],
  ])("of %j describes it", (expression, problem) => {
    expect(cronError(expression)).toContain(problem);
  });

  test("shows what an expression looks like", () => {
    expect(cronError("every hour")).toContain('looks like "2 * * * *"');
  });
});
