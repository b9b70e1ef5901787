import type { DurationMs } from "../../../src/base/duration.ts";
import type { Random } from "../../../src/base/random.ts";

/** Random values drawn from one source. */
export interface RandomChoices {
  readonly random: Random;
  /** Draws a duration from `from` to `to`. */
  ms(from: DurationMs, to: DurationMs): DurationMs;
  pick<T>(values: readonly T[]): T;
  /** Draws an integer from 0 to `below` - 1. */
  integer(below: number): number;
  chance(share: number): boolean;
  /** Draws times in ascending order, from half to one and a half times `mean` of them. */
  times(fromMs: DurationMs, untilMs: DurationMs, mean: number): readonly DurationMs[];
}

/** Creates choices that draw from `random`. */
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
