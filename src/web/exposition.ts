import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import {
  EMPTY_EXPOSITION,
  holdAll,
  type Exposition as Page,
  releaseAll,
  releaseExposition,
} from "../metrics/exposition.ts";
import type { RenderInput } from "../metrics/family.ts";
import { createRenderer } from "../metrics/renderer.ts";
import { type Format, trailer } from "../metrics/text.ts";
import type { WardenMetrics } from "../metrics/warden.ts";
import type { Clock } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createCompressor, finishGzip } from "./gzip.ts";
import { acceptsGzip, CONTENT_TYPES, negotiateFormat } from "./negotiation.ts";

/** What a client asked for. */
export interface ScrapeRequest {
  readonly accept?: string | undefined;
  readonly acceptEncoding?: string | undefined;
}

/** The answer to one scrape. Its chunks are shared with other scrapes, and nobody writes to them until `done`. */
export interface Scrape {
  readonly contentType: string;
  readonly encoding?: "gzip";
  readonly contentLength: number;
  readonly chunks: readonly Uint8Array[];
  /** Aborts when the memory is wanted back from a reader who is too slow; absent: never. */
  readonly revoked?: AbortSignal;
  /** Gives the chunks back; to be called once they were sent, or won't be. Further calls do nothing. */
  done(): void;
}

/** What /metrics shows, kept ready. */
export interface Exposition {
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
export interface ExpositionParts {
  readonly clock: Pick<Clock, "monotonic">;
  readonly warden: Pick<WardenMetrics, "render" | "set">;
  /** How long the loop is kept from other work at a time. */
  readonly sliceMs?: DurationMs;
}

/** While gzip was asked for so recently, a new rendering is compressed before it is asked for again. */
const GZIP_WANTED_MS_MAX: DurationMs = 10 * MINUTE_MS;
/** Without a new snapshot, a scrape has the last one rendered anew after this time, so that old samples leave the page. */
const RENDERING_AGE_MS_MAX: DurationMs = 10 * SECOND_MS;
/** Older renderings that slow readers may keep in memory; at a further one, the readers of the oldest are cut off. */
const OLD_PAGES_MAX = 2;

interface Reader {
  readonly page: Page;
  readonly revoked: AbortController;
}

/** Nothing of the network is shown before the first snapshot. */
export function createExposition({ clock, warden, sliceMs = 1 }: ExpositionParts): Exposition {
  const compressor = createCompressor();
  const readers = new Set<Reader>();
  let renderer = createRenderer();
  let page = EMPTY_EXPOSITION;
  let rendered: RenderInput | null = null;
  let wanted: RenderInput | null = null;
  let current = Promise.resolve();
  let next: Promise<void> | null = null;
  let rendering: Promise<void> | null = null;
  let gzipAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let gzipFormat: Format = "text";

  function refresh(input: RenderInput): Promise<void> {
    wanted = input;
    next ??= current.then(renderWanted);
    return next;
  }

  function renderWanted(): Promise<void> {
    next = null;
    rendering = render(wanted!);
    // The next one waits for the compression, or they could pile up; and a turn, so that waiting scrapes get their page.
    current = rendering.then(compressAhead).then(
      () => nextTurn(),
      () => undefined,
    );
    return rendering;
  }

  async function render(input: RenderInput): Promise<void> {
    const startedAt = clock.monotonic();
    // From here on only its readers hold the page: what they don't read is written over, and needs no memory twice.
    releaseExposition(page);
    page = EMPTY_EXPOSITION;
    try {
      show(await renderInSlices(input));
      rendered = input;
    } catch (error) {
      // A defect, and what the renderer keeps may be half of one rendering and half of another.
      renderer = createRenderer();
      show(EMPTY_EXPOSITION);
      throw error;
    } finally {
      rendering = null;
    }
    warden.set("proxywarden_export_refresh_duration_seconds", {}, (clock.monotonic() - startedAt) / SECOND_MS);
  }

  /** Compresses what a scraper is likely to ask for. If it fails, the scrape that needs it tries again, and tells. */
  async function compressAhead(): Promise<void> {
    if (clock.monotonic() - gzipAt <= GZIP_WANTED_MS_MAX) await compressor.start(page.pieces[gzipFormat]);
  }

  async function renderInSlices(input: RenderInput): Promise<Page> {
    const steps = renderer.refresh(input);
    let sliceEnd = clock.monotonic() + sliceMs;
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (clock.monotonic() < sliceEnd) continue;
      await nextTurn();
      sliceEnd = clock.monotonic() + sliceMs;
    }
  }

  function show(next: Page): void {
    page = next;
    warden.set("proxywarden_export_series", {}, page.series);
    warden.set("proxywarden_export_families_dropped", {}, page.dropped.length);
    const oldPages = [...new Set([...readers].map((reader) => reader.page))].filter((old) => old !== page);
    const unaffordable = new Set(oldPages.slice(0, -OLD_PAGES_MAX));
    for (const reader of readers) if (unaffordable.has(reader.page)) reader.revoked.abort();
  }

  /** Has samples leave the page whose time is up although no snapshot came. */
  function ageRendering(): void {
    if (rendered === null || rendering !== null || next !== null) return;
    const age = clock.monotonic() - rendered.now;
    if (age < RENDERING_AGE_MS_MAX) return;
    void refresh({ ...rendered, now: rendered.now + age, serviceNowMs: rendered.serviceNowMs + age });
  }

  async function bodyOf(shown: Page, format: Format, gzip: boolean): Promise<readonly Uint8Array[]> {
    const live = Buffer.from((await warden.render(format)) + trailer(format));
    const pieces = shown.pieces[format];
    if (!gzip) return [...pieces.map(({ bytes }) => bytes), live];
    return finishGzip(await compressor.start(pieces), live);
  }

  return {
    refresh,
    async scrape(request) {
      ageRendering();
      const format = negotiateFormat(request.accept);
      const gzip = acceptsGzip(request.acceptEncoding);
      if (gzip) {
        gzipAt = clock.monotonic();
        gzipFormat = format;
      }
      while (rendering !== null) await rendering.catch(() => undefined);
      const reader = { page, revoked: new AbortController() };
      holdAll(page.pieces[format]);
      readers.add(reader);
      const done = () => {
        if (readers.delete(reader)) releaseAll(reader.page.pieces[format]);
      };
      try {
        const chunks = await bodyOf(reader.page, format, gzip);
        return {
          contentType: CONTENT_TYPES[format],
          ...(gzip ? { encoding: "gzip" as const } : {}),
          contentLength: chunks.reduce((sum, { length }) => sum + length, 0),
          chunks,
          revoked: reader.revoked.signal,
          done,
        };
      } catch (error) {
        done();
        throw error;
      }
    },
  };
}

/** Sends the answer at the pace of its reader, from the shared chunks themselves, and gives them back when it ends. */
export function sendExposition(response: ServerResponse, scrape: Scrape): void {
  const { chunks, revoked, done } = scrape;
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
