import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { JournaledTime } from "./journal-clock.ts";

/**
 * Key of the fact that holds the last time on the journal's clock, which keeps the clock from going back. Every commit
 * changes it.
 */
export const CLOCK_FACT = "remediation.clock";
/** Key of the fact that holds `uncertainUntil` of the {@link JournalClock}. Absent if the clock was never behind. */
export const CLOCK_UNCERTAIN_FACT = "remediation.clock_uncertain_until";
/** Key of the fact that holds `behindSince` of the {@link JournalClock}. Absent if the clock is right. */
export const CLOCK_BEHIND_FACT = "remediation.clock_behind_since";
/** Key of the fact that holds `lagMs` of the {@link JournalClock}. Absent if it never lagged. */
export const CLOCK_LAG_FACT = "remediation.clock_lag";
/** A lag is journaled again after a change of this much, since the service's Date is in whole seconds. */
export const LAG_CHANGE_MS_MIN: DurationMs = 2 * SECOND_MS;

/** Reads what the facts of a journal hold about its clock. */
export function journaledTimeOf(facts: ReadonlyMap<string, string>): JournaledTime {
  const timeOf = (key: string) => (facts.has(key) ? Number(facts.get(key)) : null);
  return {
    last: timeOf(CLOCK_FACT),
    uncertainUntil: timeOf(CLOCK_UNCERTAIN_FACT),
    behindSince: timeOf(CLOCK_BEHIND_FACT),
    lagMs: timeOf(CLOCK_LAG_FACT),
  };
}
