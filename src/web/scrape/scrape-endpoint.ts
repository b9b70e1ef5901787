import type { ServerResponse } from "node:http";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { RenderInput } from "../../metrics/families/family.ts";
import type { NetworkExposition as Page } from "../../metrics/render/exposition.ts";
import { endMarker, type Format } from "../../metrics/text-format.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { acceptsGzip, CONTENT_TYPES, negotiateFormat } from "../http/content-negotiation.ts";
import { createCompressor, finishGzip } from "./gzip-assembly.ts";
import { createPageReaders } from "./page-readers.ts";
import { createRenderQueue } from "./render-queue.ts";

/** What a client asked for. */
export interface ScrapeRequest {
  readonly accept?: string | undefined;
  readonly acceptEncoding?: string | undefined;
}

/** The answer to one scrape. Its chunks are shared with other scrapes and are not overwritten until `done`. */
export interface Scrape {
  readonly contentType: string;
  readonly encoding?: "gzip";
  readonly contentLength: number;
  readonly chunks: readonly Uint8Array[];
  /** Aborts when the memory is wanted back from a reader who is too slow; absent: never. */
  readonly revoked?: AbortSignal;
  /** Gives the chunks back; to be called once they were sent, or won't be. Further calls do nothing. */
  release(): void;
}

/** What /metrics shows, kept ready. */
export interface MetricsEndpoint {
  /**
   * Renders a snapshot in short slices, and shows it once all of it is finished. While one is rendered only the newest
   * of those that come is remembered; the promise resolves when it, or a newer one, is shown.
   */
  refresh(input: RenderInput): Promise<void>;
  /**
   * Answers from memory: the last rendering, and the daemon's own metrics as they are now. Waits for a rendering under
   * way, some 50 ms for a hundred thousand nodes: it is made in the memory of the last one.
   */
  scrape(request: ScrapeRequest): Promise<Scrape>;
}

/** What it is made of. */
export interface MetricsEndpointDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly daemonMetrics: Pick<DaemonMetrics, "render" | "set">;
  /** How long the loop is kept from other work at a time. */
  readonly sliceMs?: DurationMs;
}

/** While gzip was asked for so recently, a new rendering is compressed before it is asked for again. */
const GZIP_RECENT_MS_MAX: DurationMs = 10 * MINUTE_MS;

/** Nothing of the network is shown before the first snapshot. */
export function createMetricsEndpoint({ clock, daemonMetrics, sliceMs = 1 }: MetricsEndpointDeps): MetricsEndpoint {
  const compressor = createCompressor();
  const readers = createPageReaders();
  let gzipAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let gzipFormat: Format = "text";

  const queue = createRenderQueue({
    clock,
    sliceMs,
    onShown(page) {
      daemonMetrics.set("proxywarden_export_series", {}, page.series);
      daemonMetrics.set("proxywarden_export_families_dropped", {}, page.droppedFamilies.length);
      readers.revokeOldest(page);
    },
    onRendered(tookMs) {
      daemonMetrics.set("proxywarden_export_refresh_duration_seconds", {}, tookMs / SECOND_MS);
    },
    /** Compresses what a scraper is likely to ask for. If it fails, the scrape that needs it tries again, and tells. */
    async prepare(page) {
      if (clock.monotonic() - gzipAt <= GZIP_RECENT_MS_MAX) await compressor.start(page.chunks[gzipFormat]);
    },
  });

  async function bodyOf(page: Page, format: Format, gzip: boolean): Promise<readonly Uint8Array[]> {
    const daemonText = Buffer.from((await daemonMetrics.render(format)) + endMarker(format));
    const chunks = page.chunks[format];
    if (!gzip) return [...chunks.map(({ bytes }) => bytes), daemonText];
    return finishGzip(await compressor.start(chunks), daemonText);
  }

  return {
    refresh: queue.add,
    async scrape(request) {
      const format = negotiateFormat(request.accept);
      const gzip = acceptsGzip(request.acceptEncoding);
      if (gzip) {
        gzipAt = clock.monotonic();
        gzipFormat = format;
      }
      const { page, reader } = await queue.withCurrentPage((shown) => ({
        page: shown,
        reader: readers.admit(shown, format),
      }));
      try {
        const chunks = await bodyOf(page, format, gzip);
        return {
          contentType: CONTENT_TYPES[format],
          ...(gzip ? { encoding: "gzip" as const } : {}),
          contentLength: chunks.reduce((sum, { length }) => sum + length, 0),
          chunks,
          ...reader,
        };
      } catch (error) {
        reader.release();
        throw error;
      }
    },
  };
}

/** Sends the answer at the pace of its reader, from the shared chunks themselves, and gives them back when it ends. */
export function sendScrape(response: ServerResponse, scrape: Scrape): void {
  const { chunks, revoked, release: done } = scrape;
  if (response.destroyed) {
    done();
    return;
  }
  const cut = () => response.destroy();
  response.once("close", () => {
    revoked?.removeEventListener("abort", cut);
    done();
  });
  revoked?.addEventListener("abort", cut, { once: true });
  response.writeHead(200, {
    "content-type": scrape.contentType,
    "content-length": scrape.contentLength,
    vary: "Accept, Accept-Encoding",
    ...(scrape.encoding === undefined ? {} : { "content-encoding": scrape.encoding }),
  });
  // All at once: they are references to buffers that are held anyway, and the socket takes them as its reader does.
  response.cork();
  for (const chunk of chunks) response.write(chunk);
  response.end();
}
