import fc from "fast-check";
import { expect, test } from "vitest";
import { seededRandom } from "../../src/base/random.ts";

const draw = (seed: number, count: number): number[] => {
  const random = seededRandom(seed);
  return Array.from({ length: count }, random);
};

test("the same seed gives the same numbers, another seed different ones", () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (one, other) => {
      expect(draw(one, 20)).toEqual(draw(one, 20));
      if (one !== other) expect(draw(one, 20)).not.toEqual(draw(other, 20));
    }),
  );
});

test("numbers are at least 0 and less than 1 for every seed", () => {
  fc.assert(
    fc.property(fc.oneof(fc.integer(), fc.constantFrom(0, -1, 2 ** 32 - 1, 2 ** 32, 1e15)), (seed) => {
      for (const number of draw(seed, 100)) expect(number >= 0 && number < 1).toBe(true);
    }),
  );
});

test("numbers are distributed evenly over tenths", () => {
  const tenths = new Array<number>(10).fill(0);
  for (const number of draw(7, 100_000)) tenths[Math.floor(number * 10)]! += 1;
  // The standard deviation from 10,000 is about 95; five times that would be a bug.
  for (const count of tenths) expect(Math.abs(count - 10_000)).toBeLessThan(475);
});
