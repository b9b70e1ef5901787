import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";

/** Calls in the last hour and the last day. */
export interface RecentCalls {
  readonly hour: number;
  readonly day: number;
}

/** Length of one counter slot. */
const SLOT_MS: DurationMs = 5 * MINUTE_MS;
const HOUR_SLOTS = HOUR_MS / SLOT_MS;
const DAY_SLOTS = 24 * HOUR_SLOTS;

/** Creates a counter without calls. Calls are forgotten after a day. */
export function createRecentCallCounter() {
  const slots = new Float64Array(DAY_SLOTS);
  let newest = 0;

  function advance(now: MonotonicMs): void {
    const slot = Math.floor(now / SLOT_MS);
    if (slot - newest >= DAY_SLOTS) slots.fill(0);
    else for (let index = newest + 1; index <= slot; index++) slots[index % DAY_SLOTS] = 0;
    newest = Math.max(newest, slot);
  }

  return {
    record(now: MonotonicMs): void {
      advance(now);
      slots[newest % DAY_SLOTS]!++;
    },
    calls(now: MonotonicMs): RecentCalls {
      advance(now);
      let hour = 0;
      let day = 0;
      for (let age = 0; age < DAY_SLOTS; age++) {
        const count = slots[(newest - age + DAY_SLOTS) % DAY_SLOTS]!;
        day += count;
        if (age < HOUR_SLOTS) hour += count;
      }
      return { hour, day };
    },
  };
}
