import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS, formatDuration, HOUR_MS, MINUTE_MS, parseDuration, SECOND_MS } from "../../src/base/duration.ts";

describe("parses a duration", () => {
  test.each([
    ["0", 0],
    ["0s", 0],
    ["15ms", 15],
    ["30s", 30 * SECOND_MS],
    ["5m", 5 * MINUTE_MS],
    ["1h30m", 90 * MINUTE_MS],
    ["90m", 90 * MINUTE_MS],
    ["7d", 7 * DAY_MS],
    ["2w", 14 * DAY_MS],
    ["1y", 365 * DAY_MS],
    ["1y2w3d4h5m6s7ms", 382 * DAY_MS + 4 * HOUR_MS + 5 * MINUTE_MS + 6 * SECOND_MS + 7],
  ])("%s", (text, expected) => {
    expect(parseDuration(text)).toEqual({ ok: true, value: expected });
  });
});

test.each(["", "5", "1 minute", "1.5h", "-5m", "30m1h", "5m5m", "5M", " 5m", "5m ", "5m\n", "h", "٣s"])(
  "%j is no duration, and the error says what one looks like",
  (text) => {
    const read = parseDuration(text);
    expect(read).toEqual({
      ok: false,
      error: "a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d",
    });
  },
);

test("rejects a duration beyond exact integers", () => {
  expect(parseDuration("285617y")).toEqual({ ok: false, error: "a duration is at most about 285,000 years" });
  expect(parseDuration(`${"9".repeat(400)}y`).ok).toBe(false);
});

test.each([
  [0, "0s"],
  [1, "1ms"],
  [1_500, "1s500ms"],
  [90 * MINUTE_MS, "1h30m"],
  [7 * DAY_MS, "1w"],
  [30 * DAY_MS, "30d"],
  [365 * DAY_MS, "1y"],
  [366 * DAY_MS, "366d"],
])("%d ms is written as Prometheus writes it: %s", (duration, text) => {
  expect(formatDuration(duration)).toBe(text);
});

test("parses a formatted duration to the same duration", () => {
  const durations = fc.oneof(
    fc.nat(),
    fc.maxSafeNat(),
    fc.nat({ max: 10_000 }).map((days) => days * DAY_MS),
  );
  fc.assert(
    fc.property(durations, (duration) => {
      expect(parseDuration(formatDuration(duration))).toEqual({ ok: true, value: duration });
    }),
  );
});

test("adds up units in descending order", () => {
  const counts = fc.record({ d: fc.nat(500), h: fc.nat(500), m: fc.nat(500), s: fc.nat(500), ms: fc.nat(5_000) });
  const sizes = { d: DAY_MS, h: HOUR_MS, m: MINUTE_MS, s: SECOND_MS, ms: 1 };
  fc.assert(
    fc.property(counts, fc.subarray(["d", "h", "m", "s", "ms"] as const, { minLength: 1 }), (count, units) => {
      const text = units.map((unit) => `${count[unit]}${unit}`).join("");
      const sum = units.reduce((total, unit) => total + count[unit] * sizes[unit], 0);
      expect(parseDuration(text)).toEqual({ ok: true, value: sum });
    }),
  );
});

test("never throws, and returns whole milliseconds", () => {
  const texts = fc.oneof(fc.string(), fc.stringMatching(/^(\d{0,18}(y|w|d|h|m|s|ms)?){0,8}$/));
  fc.assert(
    fc.property(texts, (text) => {
      const read = parseDuration(text);
      if (read.ok) expect(Number.isSafeInteger(read.value) && read.value >= 0).toBe(true);
      else expect(read.error).toMatch(/^a duration is /);
    }),
  );
});
