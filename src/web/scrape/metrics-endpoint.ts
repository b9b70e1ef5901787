import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { SECOND_MS } from "../../base/duration.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { RenderInput } from "../../metrics/families/family.ts";
import { LineWriter } from "../../metrics/render/line-writer.ts";
import { EMPTY_NETWORK_EXPOSITION, type NetworkExposition, NetworkRenderer } from "../../metrics/render/renderer.ts";
import { endMarker, type Format } from "../../metrics/text-format.ts";
import type { Clock } from "../../model/ports.ts";
import { nextTurn, runInSlices } from "../../platform/event-loop.ts";
import { acceptsGzip, CONTENT_TYPES, negotiateFormat } from "../http/content-negotiation.ts";
import { createCompressedExpositions, finishGzip } from "./gzip-assembly.ts";

/** Response to a scrape. */
export interface Scrape {
  readonly contentType: string;
  readonly encoding?: "gzip";
  /** Length of the body, or null if it is rendered while it is sent. */
  readonly contentLength: number | null;
  /** The body. If its length is null, each chunk is valid until the next one is taken. */
  readonly chunks: Iterable<Uint8Array>;
  /** Aborts when a slow client must be disconnected to free the snapshot that it keeps in memory. */
  readonly revoked: AbortSignal;
  /** Call it when the response has ended. Further calls do nothing. */
  release(): void;
}

/** Maximum number of older expositions that clients may keep in memory. Beyond it, clients of the oldest are disconnected. */
const OLD_EXPOSITIONS_MAX = 2;

/** Bytes of an uncompressed body that are rendered and sent per turn of the event loop, in less than a millisecond. */
const TURN_BYTES = 1_000_000;

/** Dependencies of {@link MetricsEndpoint}. */
interface MetricsEndpointDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly daemonMetrics: Pick<DaemonMetrics, "render" | "set">;
}

/** The content of /metrics. It has no metrics of the network until the first snapshot. */
export class MetricsEndpoint {
  readonly #deps: MetricsEndpointDeps;
  readonly #compressed: ReturnType<typeof createCompressedExpositions>;
  /** The clients that are reading an exposition. Each of them keeps its exposition in memory. */
  readonly #readers = new Set<{ readonly exposition: NetworkExposition; readonly revocation: AbortController }>();
  #renderer = new NetworkRenderer();
  #exposition = EMPTY_NETWORK_EXPOSITION;
  /** Options of the current exposition. */
  #options: RenderInput["options"] | null = null;
  /** Next input to publish. Null means an empty exposition. */
  #pendingInput: RenderInput | null = null;
  /** Resolves when the next input may be published. */
  #current = Promise.resolve();
  #isPending = false;
  #published = Promise.resolve();

  constructor(deps: MetricsEndpointDeps) {
    this.#deps = deps;
    this.#compressed = createCompressedExpositions(deps.clock);
  }

  /**
   * Publishes a snapshot as a whole, after preparing it in short slices. Of the snapshots that arrive in the meantime,
   * only the newest is published. Null removes all metrics of the network. Resolves when this snapshot or a newer one is
   * published, and rejects if that fails.
   */
  refresh(input: RenderInput | null): Promise<void> {
    this.#pendingInput = input;
    if (!this.#isPending) {
      this.#isPending = true;
      this.#published = this.#current.then(() => this.#publishPending());
    }
    return this.#published;
  }

  /** Resolves when the last snapshot that was passed to {@link refresh} is published, and rejects if that fails. */
  published(): Promise<void> {
    return this.#published;
  }

  /**
   * Returns the last snapshot that was published and the current metrics of the daemon. With gzip, the snapshot of a
   * large fleet may be one that was current up to 10 s ago, but never one from before a reload.
   */
  async scrape(headers: IncomingHttpHeaders): Promise<Scrape> {
    const format = negotiateFormat(headers.accept);
    const gzip = acceptsGzip(headers);
    const exposition = this.#exposition;
    const reader = { exposition, revocation: new AbortController() };
    const release = () => void this.#readers.delete(reader);
    this.#readers.add(reader);
    try {
      return {
        contentType: CONTENT_TYPES[format],
        ...(gzip ? { encoding: "gzip" as const } : {}),
        ...(await this.#bodyOf(exposition, format, gzip)),
        revoked: reader.revocation.signal,
        release,
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #bodyOf(exposition: NetworkExposition, format: Format, gzip: boolean) {
    const daemonText = Buffer.from((await this.#deps.daemonMetrics.render(format)) + endMarker(format));
    if (!gzip) {
      // Rendering the daemon's metrics has taken a turn of the event loop.
      await nextTurn();
      return { contentLength: null, chunks: renderChunks(exposition, format, daemonText) };
    }
    const chunks = finishGzip(await this.#compressed.startOf(exposition, format), daemonText);
    return { contentLength: chunks.reduce((sum, { length }) => sum + length, 0), chunks };
  }

  #publishPending(): Promise<void> {
    this.#isPending = false;
    const publishing = this.#publish(this.#pendingInput);
    // The next one waits for the preparation, and for a turn of the event loop in which waiting scrapes are answered.
    const prepared = publishing.then(() => this.#compressed.prepare(this.#exposition));
    this.#current = prepared.then(nextTurn, () => undefined);
    return publishing;
  }

  async #publish(input: RenderInput | null): Promise<void> {
    if (input === null) return this.#clear();
    const { clock, daemonMetrics } = this.#deps;
    const startedAt = clock.monotonic();
    try {
      this.#show(await runInSlices(this.#renderer.refresh(input), clock), input.options);
    } catch (error) {
      // The renderer may have stopped halfway.
      this.#clear();
      throw error;
    }
    const tookSeconds = (clock.monotonic() - startedAt) / SECOND_MS;
    daemonMetrics.set("proxywarden_export_refresh_duration_seconds", {}, tookSeconds);
  }

  #clear(): void {
    this.#renderer = new NetworkRenderer();
    this.#show(EMPTY_NETWORK_EXPOSITION, null);
  }

  #show(exposition: NetworkExposition, options: RenderInput["options"] | null): void {
    const { daemonMetrics } = this.#deps;
    this.#exposition = exposition;
    // A reload may change which metrics are exported.
    if (options === null || options !== this.#options) this.#compressed.clear();
    this.#options = options;
    daemonMetrics.set("proxywarden_export_series", {}, exposition.series);
    daemonMetrics.set("proxywarden_export_families_dropped", {}, exposition.droppedFamilies.length);
    this.#revokeOldest();
  }

  /** Revokes the oldest expositions, if clients read too many besides the current one. */
  #revokeOldest(): void {
    const old = new Set([...this.#readers].map(({ exposition }) => exposition));
    old.delete(this.#exposition);
    const revocable = new Set([...old].slice(0, -OLD_EXPOSITIONS_MAX));
    for (const { exposition, revocation } of this.#readers) if (revocable.has(exposition)) revocation.abort();
  }
}

/** Yields the rendered chunks of an exposition one by one, and then `rest`. */
function* renderChunks(
  { chunks, source }: NetworkExposition,
  format: Format,
  rest: Uint8Array,
): Generator<Uint8Array, void> {
  const writer = new LineWriter();
  for (const chunk of chunks[format]) yield chunk.render(source!, writer);
  yield rest;
}

/**
 * Sends a scrape without copying its chunks, and releases it when the response ends. If a chunk can't be rendered,
 * disconnects the client, and rejects.
 */
export async function sendScrape(response: ServerResponse, scrape: Scrape): Promise<void> {
  const { contentLength, chunks, revoked, release } = scrape;
  if (response.destroyed) {
    release();
    return;
  }
  const disconnect = () => response.destroy();
  response.once("close", () => {
    revoked.removeEventListener("abort", disconnect);
    release();
  });
  revoked.addEventListener("abort", disconnect, { once: true });
  response.writeHead(200, {
    "content-type": scrape.contentType,
    ...(contentLength === null ? {} : { "content-length": contentLength }),
    vary: "Accept, Accept-Encoding",
    ...(scrape.encoding === undefined ? {} : { "content-encoding": scrape.encoding }),
  });
  if (contentLength === null) return sendOneByOne(response, chunks);
  // Writing references to buffers needs no memory, so they are all written together.
  response.cork();
  for (const chunk of chunks) response.write(chunk);
  response.end();
}

/** Sends each chunk after the one before has been sent, and no body in response to HEAD. */
async function sendOneByOne(response: ServerResponse, chunks: Iterable<Uint8Array>): Promise<void> {
  let unyielded = 0;
  try {
    for (const chunk of response.req.method === "HEAD" ? [] : chunks) {
      const isSent = await new Promise((resolve) => response.write(chunk, (error) => resolve(!error)));
      // The client has disconnected, or was disconnected.
      if (!isSent) return;
      unyielded += chunk.length;
      if (unyielded < TURN_BYTES) continue;
      unyielded = 0;
      // The callback of a write that succeeds immediately runs in the same turn.
      await nextTurn();
    }
    response.end();
  } catch (error) {
    // Without the end of the body, the client does not take it for a complete one.
    response.destroy();
    throw error;
  }
}
