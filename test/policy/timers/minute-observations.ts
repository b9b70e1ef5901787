import { MINUTE_MS } from "../../../src/base/duration.ts";
import {
  INACTIVE,
  type Observation,
  observeCondition,
  type Timer,
  type TimerDurations,
} from "../../../src/policy/timer.ts";

/** The durations of these tests. */
export const durations: TimerDurations = { forMs: 15 * MINUTE_MS, clearForMs: 10 * MINUTE_MS, gapMsMax: 5 * MINUTE_MS };
/** The journal's clock at minute 0. */
export const EPOCH = Date.UTC(2026, 2, 1);

/** Returns an observation at a minute. */
export const observation = (minute: number, verdict: Observation["verdict"]): Observation => ({
  verdict,
  at: minute * MINUTE_MS,
  newest: minute * MINUTE_MS,
  now: EPOCH + minute * MINUTE_MS,
});

/**
 * Returns the timer after observations. `t`, `f`, `u`: true, false or unknown, one observation a minute; `.`: a minute
 * without one.
 */
export function observeAll(
  verdicts: string,
  from: Timer = INACTIVE,
  by: TimerDurations = durations,
  firstMinute = 0,
): Timer {
  const words = { t: "true", f: "false", u: "unknown" } as const;
  return [...verdicts].reduce((timer, letter, minute) => {
    const verdict = words[letter as keyof typeof words];
    return verdict === undefined ? timer : observeCondition(timer, observation(firstMinute + minute, verdict), by);
  }, from);
}

/** Returns the state of a timer and what it has counted. */
export const timerText = ({ state, trueMs, clearMs }: Timer) =>
  `${state} ${trueMs / MINUTE_MS}m ${clearMs / MINUTE_MS}m`;
/** A timer that has just fired. */
export const firingTimer = observeAll("t".repeat(16));
