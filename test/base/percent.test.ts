import fc from "fast-check";
import { expect, test } from "vitest";
import { formatPercent, parsePercent } from "../../src/base/percent.ts";

test.each([
  ["0%", 0],
  ["0.5%", 0.005],
  ["20%", 0.2],
  ["100%", 1],
  ["100.0%", 1],
])("%s is the share %d", (text, share) => {
  expect(parsePercent(text)).toEqual({ ok: true, value: share });
});

test.each(["", "20", "20 %", "%", "-1%", "100.1%", "101%", ".5%", "5.%", "1e1%", "0x10%", "20%%", "20%\n"])(
  "%j is no share, and the error says what one looks like",
  (text) => {
    expect(parsePercent(text)).toEqual({ ok: false, error: "a share is a percentage from 0% to 100%, such as 20%" });
  },
);

test("parses a formatted share with two decimals to the same share", () => {
  fc.assert(
    fc.property(fc.nat(10_000), (hundredths) => {
      const text = `${hundredths / 100}%`;
      const read = parsePercent(text);
      expect(read.ok && formatPercent(read.value)).toBe(text);
    }),
  );
});

test("never throws, and returns shares from 0 to 1", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^\d{0,6}(\.\d{0,6})?%?$/)), (text) => {
      const read = parsePercent(text);
      if (read.ok) expect(read.value >= 0 && read.value <= 1).toBe(true);
      else expect(read.error).toMatch(/^a share is /);
    }),
  );
});
