import { SESSION_TYPES } from "../../model/session.ts";
import { type Histogram, SESSION_DURATION_BUCKETS_SECONDS } from "../../model/snapshot.ts";

/** One growing histogram a session type. */
export interface SessionDurations {
  /** Takes in a session that ended. A duration of NaN, which the service never stated, is not observed. */
  observe(type: number, seconds: number): void;
  copy(): readonly Histogram[];
}

/** Histograms of nothing yet. */
export function createSessionDurations(): SessionDurations {
  const histograms = SESSION_TYPES.map(() => ({
    counts: new Float64Array(SESSION_DURATION_BUCKETS_SECONDS.length),
    count: 0,
    sum: 0,
  }));
  return {
    observe(type, seconds) {
      if (Number.isNaN(seconds)) return;
      const histogram = histograms[type]!;
      histogram.count++;
      histogram.sum += seconds;
      SESSION_DURATION_BUCKETS_SECONDS.forEach((bound, index) => {
        if (seconds <= bound) histogram.counts[index]!++;
      });
    },
    copy: () => histograms.map(({ counts, count, sum }) => ({ counts: counts.slice(), count, sum })),
  };
}
