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

/** The content of /metrics. */
export type MetricsEndpoint = ReturnType<typeof createMetricsEndpoint>;

/** Dependencies of {@link createMetricsEndpoint}. */
interface MetricsEndpointDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly daemonMetrics: Pick<DaemonMetrics, "render" | "set">;
}

/** Maximum number of older expositions that clients may keep in memory. Beyond it, clients of the oldest are disconnected. */
const OLD_EXPOSITIONS_MAX = 2;

/** Bytes of an uncompressed body that are rendered and sent per turn of the event loop, in less than a millisecond. */
const TURN_BYTES = 1_000_000;

/** Creates an endpoint. It has no metrics of the network until the first snapshot. */
export function createMetricsEndpoint({ clock, daemonMetrics }: MetricsEndpointDeps) {
  const compressed = createCompressedExpositions(clock);
  const readers = createExpositionReaders();
  /** Options of the current exposition. */
  let options: RenderInput["options"] | null = null;

  const queue = createPublicationQueue({
    clock,
    daemonMetrics,
    onShown(exposition, input) {
      // A reload may change which metrics are exported.
      if (input === null || input.options !== options) compressed.clear();
      options = input?.options ?? null;
      daemonMetrics.set("proxywarden_export_series", {}, exposition.series);
      daemonMetrics.set("proxywarden_export_families_dropped", {}, exposition.droppedFamilies.length);
      readers.revokeOldest(exposition);
    },
    prepare: compressed.prepare,
  });

  async function bodyOf(exposition: NetworkExposition, format: Format, gzip: boolean) {
    const daemonText = Buffer.from((await daemonMetrics.render(format)) + endMarker(format));
    if (!gzip) {
      // Rendering the daemon's metrics has taken a turn of the event loop.
      await nextTurn();
      return { contentLength: null, chunks: renderChunks(exposition, format, daemonText) };
    }
    const chunks = finishGzip(await compressed.startOf(exposition, format), daemonText);
    return { contentLength: chunks.reduce((sum, { length }) => sum + length, 0), chunks };
  }

  return {
    /**
     * Publishes a snapshot as a whole, after preparing it in short slices. Of the snapshots that arrive in the meantime,
     * only the newest is published. Resolves when this snapshot or a newer one is published.
     */
    refresh: (input: RenderInput): Promise<void> => queue.add(input),
    /** Removes all metrics of the network. Resolves when they are gone. */
    clear: () => queue.add(null),
    /**
     * Returns the last snapshot that was published and the current metrics of the daemon. With gzip, the snapshot of a
     * large fleet may be up to 10 s older, but never from before a reload.
     */
    async scrape(headers: IncomingHttpHeaders): Promise<Scrape> {
      const format = negotiateFormat(headers.accept);
      const gzip = acceptsGzip(headers);
      const exposition = queue.exposition();
      const reader = readers.admit(exposition);
      try {
        return {
          contentType: CONTENT_TYPES[format],
          ...(gzip ? { encoding: "gzip" as const } : {}),
          ...(await bodyOf(exposition, format, gzip)),
          ...reader,
        };
      } catch (error) {
        reader.release();
        throw error;
      }
    },
  };
}

/** Dependencies of {@link createPublicationQueue}. */
interface PublicationQueueDeps extends MetricsEndpointDeps {
  /** Called when an exposition becomes the current one. `input` is null if it is empty. */
  onShown(exposition: NetworkExposition, input: RenderInput | null): void;
  /** Called after each snapshot is published; the next publication waits for it. */
  prepare(exposition: NetworkExposition): Promise<void>;
}

/** Creates a queue that publishes snapshots one after the other. If several are waiting, it publishes only the newest. */
function createPublicationQueue({ clock, daemonMetrics, onShown, prepare }: PublicationQueueDeps) {
  let renderer = new NetworkRenderer();
  let exposition = EMPTY_NETWORK_EXPOSITION;
  /** Next input to publish. Null means an empty exposition. */
  let pendingInput: RenderInput | null = null;
  let current = Promise.resolve();
  let next: Promise<void> | null = null;

  function show(shown: NetworkExposition, input: RenderInput | null): void {
    exposition = shown;
    onShown(exposition, input);
  }

  function clear(): void {
    renderer = new NetworkRenderer();
    show(EMPTY_NETWORK_EXPOSITION, null);
  }

  function publishPending(): Promise<void> {
    next = null;
    if (pendingInput === null) {
      clear();
      return Promise.resolve();
    }
    const publishing = publish(pendingInput);
    // The next one waits for the preparation, and for a turn of the event loop in which waiting scrapes are answered.
    current = publishing.then(() => prepare(exposition)).then(nextTurn, () => undefined);
    return publishing;
  }

  async function publish(input: RenderInput): Promise<void> {
    const startedAt = clock.monotonic();
    try {
      show(await runInSlices(renderer.refresh(input), clock), input);
    } catch (error) {
      // The renderer may have stopped halfway.
      clear();
      throw error;
    }
    const tookSeconds = (clock.monotonic() - startedAt) / SECOND_MS;
    daemonMetrics.set("proxywarden_export_refresh_duration_seconds", {}, tookSeconds);
  }

  return {
    /**
     * Resolves when this snapshot or a newer one is published, and rejects if that fails. Null removes the metrics of the
     * network.
     */
    add(input: RenderInput | null): Promise<void> {
      pendingInput = input;
      next ??= current.then(publishPending);
      return next;
    },
    /** Returns the current exposition. */
    exposition: (): NetworkExposition => exposition,
  };
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

/** Sends a scrape without copying its chunks, and releases it when the response ends. */
export function sendScrape(response: ServerResponse, scrape: Scrape): void {
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
  if (contentLength === null) {
    sendOneByOne(response, chunks).catch((error: Error) => response.destroy(error));
    return;
  }
  // Writing references to buffers needs no memory, so they are all written together.
  response.cork();
  for (const chunk of chunks) response.write(chunk);
  response.end();
}

/** Sends each chunk after the one before has been sent, and no body in response to HEAD. */
async function sendOneByOne(response: ServerResponse, chunks: Iterable<Uint8Array>): Promise<void> {
  let unyielded = 0;
  for (const chunk of response.req.method === "HEAD" ? [] : chunks) {
    await new Promise<void>((resolve, reject) => response.write(chunk, (error) => (error ? reject(error) : resolve())));
    unyielded += chunk.length;
    if (unyielded < TURN_BYTES) continue;
    unyielded = 0;
    // The callback of a write that succeeds immediately runs in the same turn.
    await nextTurn();
  }
  response.end();
}

/** Creates a tracker of the clients that are reading an exposition. Each of them keeps its exposition in memory. */
function createExpositionReaders() {
  const readers = new Set<{ readonly exposition: NetworkExposition; readonly revocation: AbortController }>();
  return {
    /** Adds a client until `release` is called. `revoked` aborts when the client must be disconnected. */
    admit(exposition: NetworkExposition) {
      const reader = { exposition, revocation: new AbortController() };
      readers.add(reader);
      return { revoked: reader.revocation.signal, release: () => void readers.delete(reader) };
    },
    /** Revokes the oldest expositions, if clients read too many besides the current one. */
    revokeOldest(current: NetworkExposition): void {
      const old = new Set([...readers].map(({ exposition }) => exposition));
      old.delete(current);
      const revocable = new Set([...old].slice(0, -OLD_EXPOSITIONS_MAX));
      for (const { exposition, revocation } of readers) if (revocable.has(exposition)) revocation.abort();
    },
  };
}
