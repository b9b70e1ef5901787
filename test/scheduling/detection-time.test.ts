import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { isLongRun } from "../harness/run-length.ts";
import { byPriority, type DetectionRun, medianDelays, roundRobin } from "./detection-run.ts";

/** 5,000 nodes and 75 reads a minute: a round takes 67 minutes. */
const run = (seed: number, creepMs: DetectionRun["creepMs"]): DetectionRun => ({
  nodes: 5_000,
  callsPerMinute: 75,
  hours: 24,
  faultsPerHour: 40,
  creepMs,
  seed,
});

/** How many times faster creeps are found than by round robin on the same calls, and how many times slower jumps. */
function against(seed: number, creepMs: DetectionRun["creepMs"]) {
  const prioritized = medianDelays(run(seed, creepMs), byPriority);
  const inTurn = medianDelays(run(seed, creepMs), roundRobin);
  return { creepsFaster: inTurn.creep / prioritized.creep, jumpsSlower: prioritized.jump / inTurn.jump };
}

test.each(isLongRun ? [1, 2, 3] : [1])(
  "rises over one to eight hours are found at least ten times faster than by round robin, jumps within 1.25 times (seed %i)",
  (seed) => {
    const { creepsFaster, jumpsSlower } = against(seed, { min: HOUR_MS, max: 8 * HOUR_MS });
    expect(creepsFaster).toBeGreaterThan(10);
    expect(jumpsSlower).toBeLessThan(1.25);
  },
);

test.each(isLongRun ? [4, 5] : [4])(
  "rises shorter than a round are found at least three times faster if one read shows them (seed %i)",
  (seed) => {
    const { creepsFaster, jumpsSlower } = against(seed, { min: 40 * MINUTE_MS, max: 60 * MINUTE_MS });
    expect(creepsFaster).toBeGreaterThan(3);
    expect(jumpsSlower).toBeLessThan(1.25);
  },
);
