import type { DurationMs } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { Timer, TimerRule } from "./timer.ts";

/** What is known of the detail that a timer's policy reads. */
export interface DetailFreshness {
  /** When it was observed; NaN: never. */
  readonly observedAt: MonotonicMs;
  /** The oldest that the policy reads. */
  readonly maxAgeMs: DurationMs;
  /** How long a round of all details is planned to take. */
  readonly roundMs: DurationMs;
}

/** A detail is read again after this share of its max_age, so that it does not grow stale under the timer. */
const REREAD_AGE_SHARE = 0.75;
/** Reads a round for a firing timer, and for one whose verdict is unknown. */
const FIRING_READS_PER_ROUND = 2;
const UNKNOWN_READS_PER_ROUND = 4;

/**
 * Returns from when on a read of the detail can change a timer: let a pending one fire, or clear a firing one. Infinity: no
 * timer waits.
 */
export function nextUsefulReadAt(
  timer: Timer,
  rule: Pick<TimerRule, "forMs" | "clearForMs">,
  detail: DetailFreshness,
): MonotonicMs {
  if (timer.state === "inactive") return Number.POSITIVE_INFINITY;
  // Never read, or not since the start of this process: at once.
  if (timer.last === null || Number.isNaN(detail.observedAt)) return Number.NEGATIVE_INFINITY;
  return Math.min(completesAt(timer, rule, detail), detail.observedAt + REREAD_AGE_SHARE * detail.maxAgeMs);
}

function completesAt(
  { state, trueMs, clearMs, last }: Timer,
  { forMs, clearForMs }: Pick<TimerRule, "forMs" | "clearForMs">,
  { observedAt, roundMs }: DetailFreshness,
): MonotonicMs {
  if (last === null || last.verdict === "unknown") return observedAt + roundMs / UNKNOWN_READS_PER_ROUND;
  if (last.verdict === "false") return last.at + clearForMs - clearMs;
  return state === "firing" ? observedAt + roundMs / FIRING_READS_PER_ROUND : last.at + forMs - trueMs;
}
