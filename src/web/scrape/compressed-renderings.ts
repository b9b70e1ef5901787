import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { NetworkExposition as Page } from "../../metrics/render/renderer.ts";
import type { Format } from "../../metrics/text-format.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createCompressor, type GzipStart } from "./gzip-assembly.ts";

/** Renderings are compressed ahead of scrapes if gzip was requested within this time. */
const REQUESTED_MS_MAX: DurationMs = 10 * MINUTE_MS;
/** After a compression, the next one ahead of a scrape waits for this many times as long as it took. */
const PAUSE_FACTOR = 19;
/** Longest such pause. */
const PAUSE_MS_MAX: DurationMs = 5 * SECOND_MS;
/** A scrape waits for the compression of the current rendering if the last one took no longer than this. */
const WAIT_MS_MAX: DurationMs = 50;
/** Otherwise it gets a compressed rendering up to this age. It allows for the pause and the next compression. */
const AGE_MS_MAX: DurationMs = 10 * SECOND_MS;

interface CompressedRendering {
  readonly start: GzipStart;
  /** When its compression began. */
  readonly at: MonotonicMs;
  readonly tookMs: DurationMs;
}

/**
 * Compresses renderings ahead of the scrapes that are likely to request them. A large fleet is rendered every few seconds,
 * and compressing each rendering would take more CPU than everything else, so compression runs a twentieth of the time,
 * or every five seconds. In between, a scrape gets the last compressed rendering, unless the current one can be compressed
 * quickly.
 */
export function createCompressedRenderings(clock: Pick<Clock, "monotonic">) {
  const startGzip = createCompressor();
  let latest = new Map<Format, CompressedRendering>();
  let requestedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let requestedFormat: Format = "text";
  let pausedUntil: MonotonicMs = Number.NEGATIVE_INFINITY;

  async function compress(page: Page, format: Format): Promise<GzipStart> {
    const renderings = latest;
    const at = clock.monotonic();
    const start = await startGzip(page, format);
    const now = clock.monotonic();
    renderings.set(format, { start, at, tookMs: now - at });
    pausedUntil = now + Math.min(PAUSE_MS_MAX, PAUSE_FACTOR * (now - at));
    return start;
  }

  return {
    /** Compresses a new rendering, unless it is not likely to be requested. If that fails, the next scrape tries again. */
    async prepare(page: Page): Promise<void> {
      const now = clock.monotonic();
      if (now - requestedAt <= REQUESTED_MS_MAX && now >= pausedUntil) await compress(page, requestedFormat);
    },
    /** Returns the beginning of a gzip body for a scrape, of `page` or of a rendering a few seconds before it. */
    async startOf(page: Page, format: Format): Promise<GzipStart> {
      const now = clock.monotonic();
      requestedAt = now;
      requestedFormat = format;
      const found = latest.get(format);
      const isUsed = found !== undefined && found.tookMs > WAIT_MS_MAX && now - found.at <= AGE_MS_MAX;
      return isUsed ? found.start : compress(page, format);
    },
    /** Forgets all renderings, including one that is being compressed. */
    clear() {
      latest = new Map();
    },
  };
}
