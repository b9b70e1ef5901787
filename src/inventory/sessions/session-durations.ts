import { SESSION_TYPES } from "../../model/session.ts";
import { type Histogram, SESSION_DURATION_BUCKETS_SECONDS } from "../../model/snapshot.ts";

/** One cumulative histogram of durations per session type. */
export class SessionDurations {
  readonly #histograms = SESSION_TYPES.map(() => ({
    counts: new Float64Array(SESSION_DURATION_BUCKETS_SECONDS.length),
    count: 0,
    sum: 0,
  }));

  /** Adds a session that ended. `type` is an index into SESSION_TYPES. A duration of NaN (never reported) is ignored. */
  observe(type: number, seconds: number): void {
    if (Number.isNaN(seconds)) return;
    const histogram = this.#histograms[type]!;
    histogram.count++;
    histogram.sum += seconds;
    for (const [index, bound] of SESSION_DURATION_BUCKETS_SECONDS.entries())
      if (seconds <= bound) histogram.counts[index]!++;
  }

  copy(): readonly Histogram[] {
    return this.#histograms.map(({ counts, count, sum }) => ({ counts: counts.slice(), count, sum }));
  }
}
