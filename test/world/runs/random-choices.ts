import type { DurationMs } from "../../../src/base/duration.ts";
import type { Random } from "../../../src/base/random.ts";

/** Values drawn from a source of numbers, one after the other. */
export interface RandomChoices {
  readonly random: Random;
  /** A duration between two. */
  ms(from: DurationMs, to: DurationMs): DurationMs;
  pick<T>(values: readonly T[]): T;
  /** A whole number from 0, below another. */
  integer(below: number): number;
  chance(share: number): boolean;
  /** Some instants between two, about `mean` of them, in order. */
  times(fromMs: DurationMs, untilMs: DurationMs, mean: number): readonly DurationMs[];
}

/** Creates the draw of a source. */
export function createRandomChoices(random: Random): RandomChoices {
  const ms = (from: DurationMs, to: DurationMs): DurationMs => Math.round(from + random() * (to - from));
  return {
    random,
    ms,
    pick: (values) => values[Math.floor(random() * values.length)]!,
    integer: (below) => Math.floor(random() * below),
    chance: (share) => random() < share,
    times: (fromMs, untilMs, mean) =>
      Array.from({ length: Math.round(mean * (0.5 + random())) }, () => ms(fromMs, untilMs)).sort((a, b) => a - b),
  };
}
