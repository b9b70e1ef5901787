import fc from "fast-check";
import { expect, test } from "vitest";
import { seededRandom } from "../../src/base/random.ts";

const draw = (seed: number, count: number): number[] => {
  const random = seededRandom(seed);
  return Array.from({ length: count }, random);
};

test("the same seed gives the same numbers, another seed gives others", () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (one, other) => {
      expect(draw(one, 20)).toEqual(draw(one, 20));
      if (one !== other) expect(draw(one, 20)).not.toEqual(draw(other, 20));
    }),
  );
});

test("every number is at least 0 and less than 1, whatever the seed", () => {
  fc.assert(
    fc.property(fc.oneof(fc.integer(), fc.constantFrom(0, -1, 2 ** 32 - 1, 2 ** 32, 1e15)), (seed) => {
      for (const number of draw(seed, 100)) expect(number >= 0 && number < 1).toBe(true);
    }),
  );
});

test("the numbers fill the tenths of their range evenly", () => {
  const tenths = new Array<number>(10).fill(0);
  for (const number of draw(7, 100_000)) tenths[Math.floor(number * 10)]! += 1;
  // A fair source strays by some 95 from 10,000; five times that is a fault of the source.
  for (const count of tenths) expect(Math.abs(count - 10_000)).toBeLessThan(475);
});
