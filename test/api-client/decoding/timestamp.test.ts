import fc from "fast-check";
import { expect, test } from "vitest";
import { parseTimestamp } from "../../../src/api-client/decoding/fields.ts";

const instants = fc.date({
  min: new Date("0001-01-01T00:00:00Z"),
  max: new Date("9999-12-31T23:59:59.999Z"),
  noInvalidDate: true,
});

test("parses all times of the years 1 to 9999 as Date does, with and without milliseconds", () => {
  fc.assert(
    fc.property(instants, (date) => {
      const iso = date.toISOString();
      expect(parseTimestamp(iso)).toBe(date.getTime());
      expect(parseTimestamp(`${iso.slice(0, 19)}Z`)).toBe(Math.floor(date.getTime() / 1_000) * 1_000);
    }),
    { numRuns: 2_000 },
  );
});

test("rejects what Date rejects, and days that the month does not have", () => {
  const digits = fc
    .tuple(fc.nat(9_999), fc.nat(15), fc.nat(35), fc.nat(25), fc.nat(65), fc.nat(65))
    .map(([y, mo, d, h, mi, s]) => {
      const two = (value: number) => String(value).padStart(2, "0");
      return `${String(y).padStart(4, "0")}-${two(mo)}-${two(d)}T${two(h)}:${two(mi)}:${two(s)}Z`;
    });
  fc.assert(
    fc.property(digits, (iso) => {
      // Date reads 31 February as 3 March.
      const isDay = new Date(iso.slice(0, 10)).getUTCDate() === Number(iso.slice(8, 10));
      expect(parseTimestamp(iso)).toBe(isDay ? Date.parse(iso) : Number.NaN);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ["2026-03-01T00:00:00", Date.UTC(2026, 2, 1)],
  ["2026-03-01T02:30:00+02:30", Date.UTC(2026, 2, 1)],
  ["2026-03-01T00:00:00.123456Z", Date.UTC(2026, 2, 1) + 123],
  ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
])("%s is parsed independently of the local time zone", (iso, at) => {
  expect(parseTimestamp(iso)).toBe(at);
});

test.each([
  "",
  "yesterday",
  "2026-03-01",
  "1772323200",
  "2026-13-01T00:00:00Z",
  "2026-03-01T00:00:0xZ",
  "2026-03-01 00:00:00Z",
  "2024-02-30T00:00:00Z",
  "2026-02-29T00:00:00+02:00",
])("%o is not a timestamp", (text) => {
  expect(parseTimestamp(text)).toBeNaN();
});
