import fc from "fast-check";
import { expect, test } from "vitest";
import { staleFiles } from "../../../scripts/generated-files.ts";
import { generatedFiles } from "../../../scripts/wasm.ts";
import { encodeTexts, LineWriter } from "../../../src/metrics/render/line-writer.ts";
import { valueText } from "../../../src/metrics/text-format.ts";
import { propertyRuns } from "../../harness/run-length.ts";

const writer = new LineWriter();
const labels = encodeTexts(["first", "second"]);

/** Returns the lines of nodes, which have one line each. */
function linesOf(values: readonly number[], decimals = 0, { first = 0, end = values.length } = {}): string {
  const format = { texts: encodeTexts(["family{", "} "]), decimals };
  writer.values().set(values);
  return Buffer.from(writer.write(format, labels, first, end)).toString();
}

/** Returns the text written for a value that is not NaN. */
const written = (value: number, decimals = 0): string =>
  /^family\{first\} (.*)\n$/.exec(linesOf([value], decimals))![1]!;

test("the compiled line writer is that of its source", () => {
  expect(staleFiles(generatedFiles)).toEqual([]);
});

test("writes a line for each node, between the parts that the lines have in common", () => {
  expect(linesOf([1, 2.5])).toBe("family{first} 1\nfamily{second} 2.5\n");
});

test("writes several lines for each node", () => {
  const format = { texts: encodeTexts(["family{", ",a} ", ",bb} "]), decimals: 0 };
  writer.values().set([1, 2, 3, 4]);
  const lines = writer.write(format, labels, 0, 2);
  expect(Buffer.from(lines).toString()).toBe(
    "family{first,a} 1\nfamily{first,bb} 2\nfamily{second,a} 3\nfamily{second,bb} 4\n",
  );
});

test("writes the lines of some of the nodes of a page", () => {
  expect(linesOf([7], 0, { first: 1, end: 2 })).toBe("family{second} 7\n");
});

test("keeps the lines of a writer while another one writes", () => {
  const other = new LineWriter();
  const format = { texts: encodeTexts(["family{", "} "]), decimals: 0 };
  for (const [at, each] of [writer, other].entries()) each.values().fill(at);
  const [lines, otherLines] = [writer, other].map((each) => each.write(format, labels, 0, 2)) as [
    Uint8Array,
    Uint8Array,
  ];
  expect(Buffer.from(lines).toString()).toBe("family{first} 0\nfamily{second} 0\n");
  expect(Buffer.from(otherLines).toString()).toBe("family{first} 1\nfamily{second} 1\n");
});

test("leaves out lines without a value", () => {
  expect(linesOf([Number.NaN, 3])).toBe("family{second} 3\n");
});

test("writes labels of any length", () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(lengths, (sizes) => {
      const texts = sizes.map((size) => "é".repeat(size));
      const format = { texts: encodeTexts(["", " "]), decimals: 0 };
      writer.values().fill(0);
      const lines = writer.write(format, encodeTexts(texts), 0, texts.length);
      expect(Buffer.from(lines).toString()).toBe(texts.map((text) => `${text} 0\n`).join(""));
    }),
    propertyRuns(50),
  );
});

const decimals = fc
  .tuple(fc.integer({ min: 0, max: 999_999_999_999_999 }), fc.integer({ min: 0, max: 12 }))
  .map(([digits, places]) => digits / 10 ** places);

test("writes a value as its shortest text", () => {
  fc.assert(
    fc.property(fc.oneof(fc.double({ noNaN: true }), fc.maxSafeInteger(), decimals), (value) => {
      expect(written(value)).toBe(valueText(value));
    }),
    propertyRuns(3_000),
  );
});

test("writes a value with a fixed number of decimals if it has no more", () => {
  const places = fc.integer({ min: 1, max: 4 });
  fc.assert(
    fc.property(fc.oneof(fc.double({ noNaN: true }), fc.maxSafeInteger(), decimals), places, (value, fixed) => {
      expect(written(value, fixed)).toBe(valueText(value, fixed));
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
])("%d with four decimals is %s", (value, text) => {
  expect(written(value, 4)).toBe(text);
});

test("writes a text that parses to the same number", () => {
  fc.assert(
    fc.property(fc.oneof(fc.double({ noNaN: true }), decimals), (value) => {
      const text = written(value).replace("Inf", "Infinity");
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
])("%d is %s", (value, text) => {
  expect(written(value)).toBe(text);
});
