import fc from "fast-check";
import { expect, test } from "vitest";
import { parseTime } from "../../../src/cli/arguments/past-time.ts";
import { formatTime } from "../../../src/cli/output/text.ts";

const NOW = Date.UTC(2026, 10, 21, 3, 12, 44);

test.each([
  ["2h", NOW - 7_200_000],
  ["0", NOW],
  ["1d12h", NOW - 129_600_000],
  ["2026-11-21T03:12:44Z", NOW],
  ["2026-11-21T03:12:44.000Z", NOW],
  ["2026-11-21T03:12", NOW - 44_000],
  ["2026-11-21 03:12", NOW - 44_000],
  ["2026-11-21T04:12:44+01:00", NOW],
  ["2026-11-20", Date.UTC(2026, 10, 20)],
])("%j is a time in the past, in UTC unless it has an offset", (text, at) => {
  expect(parseTime(text, NOW)).toEqual({ ok: true, value: at });
});

test.each([
  "yesterday",
  "",
  "2026-13-01",
  "2026-02-31",
  "2026-02-29T03:12Z",
  "2026-11-21T25:00",
  "21.11.2026",
  "2026-11-21T03",
  "-2h",
  "99999y",
])("%j is none, and the error says what one is", (text) => {
  expect(parseTime(text, NOW)).toEqual({
    ok: false,
    error: "it must be a time such as 2026-11-21T03:12:00Z, or how long ago, such as 2h",
  });
});

test("a future time is rejected: it is most likely in another time zone", () => {
  expect(parseTime("2026-11-21T03:12:45Z", NOW)).toEqual({
    ok: false,
    error: "it must be in the past; times without an offset such as +02:00 are UTC",
  });
});

test("a formatted time is parsed as the same time, to the second", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: NOW }), (at) => {
      const readable = formatTime(new Date(at).toISOString());
      expect(parseTime(readable, NOW)).toEqual({ ok: true, value: at - (at % 1_000) });
    }),
  );
});
