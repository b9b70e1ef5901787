import { expect, test } from "vitest";
import { NumberColumn } from "../../../src/base/number-column.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { slotsInOrder, summarizeTimes } from "../../../src/web/api/fleet-columns.ts";

const random = seededRandom(1);

test.each([0, 1, 511, 512, 513, 1_024, 5_000])("%d slots are put in the order of their ids", (count) => {
  const ids = Array.from({ length: count }, (_, slot) =>
    slot % 7 === 3 ? "" : `node_${Math.floor(random() * 1e9).toString(36)}-${slot}`,
  );
  const expected = ids.filter((id) => id !== "").toSorted((a, b) => (a < b ? -1 : 1));
  expect([...runAtOnce(slotsInOrder(ids))].map((slot) => ids[slot])).toEqual(expected);
});

test("the order of many slots is found in many steps, and once for each column", () => {
  const ids = Array.from({ length: 5_000 }, (_, slot) => `node_${(slot * 7_919) % 5_000}`);
  const steps = [...slotsInOrder(ids)].length;
  expect(steps).toBeGreaterThan(20);
  expect([...slotsInOrder(ids)]).toEqual([]);
});

test("times are summarized like sorted ones, without unknown ones", () => {
  expect(summarizeTimes(NumberColumn.from([]))).toEqual({ count: 0, earliest: Number.NaN, median: Number.NaN });
  expect(summarizeTimes(NumberColumn.from([Number.NaN]))).toEqual({
    count: 0,
    earliest: Number.NaN,
    median: Number.NaN,
  });
  for (const count of [1, 2, 3, 10, 1_001]) {
    const times = Float64Array.from({ length: count }, () =>
      random() < 0.2 ? Number.NaN : Math.floor(random() * 100),
    );
    const sorted = times.filter((at) => !Number.isNaN(at)).sort();
    const { length } = sorted;
    const [earliest, median] = [sorted[0] ?? Number.NaN, sorted[length >> 1] ?? Number.NaN];
    expect(summarizeTimes(NumberColumn.from(times))).toEqual({ count: length, earliest, median });
  }
});
