import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { NetworkExposition } from "../../metrics/render/renderer.ts";
import type { Format } from "../../metrics/text-format.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createCompressor, type GzipStart } from "./gzip-assembly.ts";

/** Expositions are compressed ahead of scrapes if gzip was requested within this time. */
const REQUESTED_MS_MAX: DurationMs = 10 * MINUTE_MS;
/** After a compression, the next one ahead of a scrape waits this many times as long as the last one took. */
const PAUSE_FACTOR = 19;
/** Longest such pause. */
const PAUSE_MS_MAX: DurationMs = 5 * SECOND_MS;
/** A scrape waits for the compression of the current exposition if the last one took no longer than this, or is too old. */
const WAIT_MS_MAX: DurationMs = 50;
/** Otherwise, the scrape gets a compressed exposition up to this age, which allows for the pause and the next compression. */
const AGE_MS_MAX: DurationMs = 10 * SECOND_MS;

interface CompressedExposition {
  readonly start: GzipStart;
  /** When its compression began. */
  readonly at: MonotonicMs;
  readonly tookMs: DurationMs;
}

/**
 * Compresses expositions ahead of the scrapes that are likely to request them. A large fleet is published every few
 * seconds, and compressing each snapshot would take more CPU than everything else. So each compression is followed by a
 * pause of 19 times its duration, at most five seconds. In between, a scrape gets the last compressed exposition, unless
 * the last compression was quick.
 */
export function createCompressedExpositions(clock: Pick<Clock, "monotonic">) {
  const startGzip = createCompressor();
  let latest = new Map<Format, CompressedExposition>();
  let requestedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let requestedFormat: Format = "text";
  let pausedUntil: MonotonicMs = Number.NEGATIVE_INFINITY;

  async function compress(exposition: NetworkExposition, format: Format): Promise<GzipStart> {
    const target = latest;
    const at = clock.monotonic();
    const start = await startGzip(exposition, format);
    const now = clock.monotonic();
    target.set(format, { start, at, tookMs: now - at });
    pausedUntil = now + Math.min(PAUSE_MS_MAX, PAUSE_FACTOR * (now - at));
    return start;
  }

  return {
    /**
     * Compresses a new exposition if a scrape is likely to request it, unless compression is paused. If that fails, the
     * next scrape tries again.
     */
    async prepare(exposition: NetworkExposition): Promise<void> {
      const now = clock.monotonic();
      if (now - requestedAt <= REQUESTED_MS_MAX && now >= pausedUntil) await compress(exposition, requestedFormat);
    },
    /** Returns the beginning of a gzip body for a scrape, of `exposition` or of one up to 10 s older. */
    async startOf(exposition: NetworkExposition, format: Format): Promise<GzipStart> {
      const now = clock.monotonic();
      requestedAt = now;
      requestedFormat = format;
      const found = latest.get(format);
      const isUsed = found !== undefined && found.tookMs > WAIT_MS_MAX && now - found.at <= AGE_MS_MAX;
      return isUsed ? found.start : compress(exposition, format);
    },
    /** Forgets all compressed expositions, including one that is being compressed. */
    clear() {
      latest = new Map();
    },
  };
}
