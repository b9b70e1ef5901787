import fc from "fast-check";
import { expect, test } from "vitest";
import { VALUE_BYTES_MAX, writeValue } from "../../../src/metrics/render/number-format.ts";
import { valueText } from "../../../src/metrics/text-format.ts";
import { propertyRuns } from "../../harness/run-length.ts";

const BYTES = 64;
const START = 1;

/** Returns the text written for `value`, and the byte before it. */
function written(value: number, places = 0): string {
  const target = Buffer.alloc(BYTES, "#");
  const end = writeValue(new DataView(target.buffer, target.byteOffset, BYTES), START, value, places);
  expect(end - START).toBeLessThanOrEqual(VALUE_BYTES_MAX);
  return target.subarray(0, end).toString();
}

const decimals = fc
  .tuple(fc.integer({ min: 0, max: 999_999_999_999_999 }), fc.integer({ min: 0, max: 12 }))
  .map(([digits, places]) => digits / 10 ** places);

test("writes a value as its shortest text, and nothing before it", () => {
  fc.assert(
    fc.property(fc.oneof(fc.double(), fc.maxSafeInteger(), decimals), (value) => {
      expect(written(value)).toBe(`#${valueText(value)}`);
    }),
    propertyRuns(3_000),
  );
});

test("writes a value with a fixed number of decimals if it has no more", () => {
  const places = fc.integer({ min: 1, max: 4 });
  fc.assert(
    fc.property(fc.oneof(fc.double(), fc.maxSafeInteger(), decimals), places, (value, fixed) => {
      expect(written(value, fixed)).toBe(`#${valueText(value, fixed)}`);
    }),
    propertyRuns(3_000),
  );
});

test.each([
  [0, "0.0000"],
  [1, "1.0000"],
  [0.5, "0.5000"],
  [0.4327, "0.4327"],
  [0.43271, "0.43271"],
  [12.05, "12.0500"],
  [-0.5, "-0.5000"],
  [99_999_999_999.5, "99999999999.5000"],
  [1e11, "100000000000"],
  [1e21, "1e+21"],
  [Number.POSITIVE_INFINITY, "+Inf"],
  [Number.NaN, "NaN"],
])("%d with four decimals is %s", (value, text) => {
  expect(written(value, 4)).toBe(`#${text}`);
});

test("writes a text that parses to the same number", () => {
  fc.assert(
    fc.property(fc.oneof(fc.double({ noNaN: true }), decimals), (value) => {
      const text = written(value).slice(START).replace("Inf", "Infinity");
      expect(Number(text) + 0).toBe(value + 0);
    }),
    propertyRuns(3_000),
  );
});

test.each([
  [0, "0"],
  [-0, "0"],
  [10, "10"],
  [99_999_999, "99999999"],
  [100_000_000, "100000000"],
  [123_456_789_012_345, "123456789012345"],
  [999_999_999_999_999, "999999999999999"],
  [1e15, "1000000000000000"],
  [1e21, "1e+21"],
  [0.5, "0.5"],
  [0.001, "0.001"],
  [0.000_001, "0.000001"],
  [1e-7, "1e-7"],
  [0.999_999_999_9, "0.9999999999"],
  [1_763_700_000.12, "1763700000.12"],
  [0.1 + 0.2, "0.30000000000000004"],
  [-1.5, "-1.5"],
  [Number.MAX_VALUE, "1.7976931348623157e+308"],
  [Number.MIN_VALUE, "5e-324"],
  [Number.POSITIVE_INFINITY, "+Inf"],
  [Number.NEGATIVE_INFINITY, "-Inf"],
  [Number.NaN, "NaN"],
])("%d is %s", (value, text) => {
  expect(written(value)).toBe(`#${text}`);
});
