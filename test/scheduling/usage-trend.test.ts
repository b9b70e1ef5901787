import { describe, expect, test } from "vitest";
import type { Threshold } from "../../src/model/policy/policy.ts";
import { type UsageOutlook, UsageTrends } from "../../src/scheduling/usage-trend.ts";

/** A round takes a hundred. */
const ROUND = 100;
const nines: readonly Threshold[] = [{ usage: "diskUsage", value: 0.9, side: "above" }];

/** Usage of a disk after some reads. The others stay constant. */
function outlookAfter(reads: readonly (readonly [at: number, disk: number])[], lines = nines): UsageOutlook | null {
  const trends = new UsageTrends();
  trends.setThresholds(lines);
  for (const [at, diskUsage] of reads)
    trends.recordReading(0, { cpuUsage: 0.1, memoryUsage: 0.1, diskUsage }, at, ROUND);
  return trends.outlook(0, ROUND);
}

describe("a constant usage", () => {
  test("is not read before its turn far from every threshold", () => {
    expect(outlookAfter([[0, 0.7]])).toBeNull();
    expect(
      outlookAfter([
        [0, 0.84],
        [100, 0.84],
      ]),
    ).toBeNull();
  });

  test("is read two to four times per round near a threshold, more often the nearer it is", () => {
    expect(outlookAfter([[0, 0.8501]])?.afterMs).toBeCloseTo(50, 0);
    expect(outlookAfter([[0, 0.867]])?.afterMs).toBeCloseTo(33, 0);
    expect(outlookAfter([[0, 0.899]])).toEqual({ kind: "near", afterMs: 25 });
  });

  test("is not read before its turn beyond the threshold, where the policy's timer asks for reads", () => {
    expect(outlookAfter([[0, 0.91]])).toBeNull();
  });

  test("is near a threshold from above if the policy matches below it", () => {
    const below: readonly Threshold[] = [{ usage: "diskUsage", value: 0.1, side: "below" }];
    expect(outlookAfter([[0, 0.11]], below)?.kind).toBe("near");
    expect(outlookAfter([[0, 0.09]], below)).toBeNull();
  });

  test("is not read before its turn if it is unknown or forgotten", () => {
    expect(outlookAfter([[0, Number.NaN]])).toBeNull();
    expect(
      outlookAfter([
        [0, 0.89],
        [50, Number.NaN],
      ]),
    ).toBeNull();
    const trends = new UsageTrends();
    trends.setThresholds(nines);
    trends.recordReading(0, { cpuUsage: 0.1, memoryUsage: 0.1, diskUsage: 0.89 }, 0, ROUND);
    trends.forgetNode(0);
    expect([trends.outlook(0, ROUND), trends.outlook(7, ROUND)]).toEqual([null, null]);
  });
});

describe("a rising usage", () => {
  test("is read again soon if the rise was unexpected, since it may have just begun", () => {
    const after = outlookAfter([
      [0, 0.3],
      [100, 0.5],
    ]);
    expect(after).toEqual({ kind: "rising", afterMs: 100 / 16 });
  });

  test("is read after a third of the time to the threshold if the rise was expected", () => {
    const after = outlookAfter([
      [0, 0.1],
      [100, 0.4],
      [200, 0.7],
    ]);
    expect(after?.kind).toBe("rising");
    // It is to cross after 66.
    expect(after?.afterMs).toBeCloseTo(200 / 3 / 3, 0);
  });

  test("is no longer suspect if it did not rise further at the second read", () => {
    expect(
      outlookAfter([
        [0, 0.3],
        [100, 0.5],
        [107, 0.5],
      ]),
    ).toBeNull();
  });

  test("shows its real slope at the second read", () => {
    const after = outlookAfter([
      [0, 0.3],
      [100, 0.4],
      [107, 0.6],
    ]);
    // 0.2 in 7: it is to cross after 10.5.
    expect(after?.afterMs).toBeCloseTo(10.5 / 3, 1);
  });

  test("is read at most 64 times per round", () => {
    expect(
      outlookAfter([
        [0, 0.5],
        [100, 0.69],
        [200, 0.88],
        [206, 0.899],
      ])?.afterMs,
    ).toBe(100 / 64);
  });

  test("is treated as constant if the rise is usual", () => {
    const after = outlookAfter([
      [0, 0.87],
      [100, 0.89],
    ]);
    expect(after).toEqual({ kind: "near", afterMs: 25 });
  });

  test("is not suspect if it moves away from the threshold", () => {
    expect(
      outlookAfter([
        [0, 0.8],
        [100, 0.4],
      ]),
    ).toBeNull();
  });

  test("is not suspect if it rises with the whole fleet", () => {
    const trends = new UsageTrends();
    trends.setThresholds(nines);
    const ramp = (round: number, slot: number) => 0.2 + 0.1 * round + 0.01 * (slot % 3);
    for (let round = 0; round < 4; round++) {
      for (let slot = 0; slot < 100; slot++) {
        const reading = { cpuUsage: 0.1, memoryUsage: 0.1, diskUsage: ramp(round, slot) };
        trends.recordReading(slot, reading, ROUND * round + slot, ROUND);
      }
    }
    const suspects = Array.from({ length: 100 }, (_, slot) => trends.outlook(slot, ROUND)).filter(
      (each) => each !== null,
    );
    expect(suspects).toEqual([]);
  });
});
