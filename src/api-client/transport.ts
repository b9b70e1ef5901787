import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent } from "undici";
import { fail, ok, type Result } from "../base/result.ts";
import type { Transport, TransportFailure, TransportResponse } from "../model/ports.ts";
import { nextTurn } from "../platform/event-loop.ts";
import { IN_FLIGHT_MAX } from "../rate-limit/collector-concurrency.ts";
import { ACCEPTED_ENCODING } from "./json-body.ts";

/** How to reach a server. */
export interface TransportOptions {
  /** `https://host` with an optional path prefix. */
  readonly baseUrl: string;
  /** PEM CA certificates to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** PEM client certificate and its key. Absent if there is none. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Name that the server's certificate must contain. Absent means the host of the URL. */
  readonly serverName?: string | undefined;
  /** Whether to accept any certificate. Defaults to false. */
  readonly insecureSkipVerify?: boolean | undefined;
  /** URL of an HTTP proxy. Absent if there is none, or if the environment names it. */
  readonly proxy?: string;
  /** Whether to use HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Defaults to false. */
  readonly proxyFromEnvironment?: boolean;
  /** Maximum size of a body, compressed or not. Absent means {@link BODY_BYTES_MAX}. */
  readonly bodyBytesMax?: number | undefined;
}

/** Maximum size of a body unless another one is given. A page of 10,000 records has a quarter of that. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Maximum number of connections. They suffice for all collectors, so that no call waits for one during its timeout.
 */
const CONNECTIONS_MAX = 4 * IN_FLIGHT_MAX;
/** A larger body takes milliseconds to process, so it is returned in a turn of the event loop of its own. */
const LARGE_BODY_BYTES = 65_536;
/** Time limit to open a connection. */
const CONNECT_MS_MAX = 10_000;
/** Time for which idle connections are kept, which is longer than the wait between two calls at a slow pace. */
const KEEP_ALIVE_MS = 60_000;

/**
 * Creates a transport over undici. Time-outs are the caller's, through the signal, so those of undici are off. A POST
 * is never sent twice: each uses a new connection, which the server can't be closing as idle at that moment, and
 * HTTP/1.1, since undici resends an HTTP/2 stream that the server has not processed.
 */
export function createTransport(options: TransportOptions): Transport {
  const base = new URL(options.baseUrl);
  const prefix = base.pathname.replace(/\/+$/, "");
  const { bodyBytesMax = BODY_BYTES_MAX } = options;
  const reading = createDispatcher(options, {});
  const posting = createDispatcher(options, { pipelining: 0, allowH2: false });
  return {
    request(request, signal) {
      const { method, path, headers, body = null } = request;
      const progress: RequestProgress = { isSent: false, mayBeSent: request.mayBeSent ?? (() => true) };
      const allHeaders = { "accept-encoding": ACCEPTED_ENCODING, ...headers };
      const options = { origin: base.origin, path: prefix + path, method, headers: allHeaders, body };
      const response = send(method === "POST" ? posting : reading, options, progress, bodyBytesMax, signal);
      return failOnAbortBeforeSending(response, progress, signal);
    },
    close: () => Promise.all([reading.destroy(), posting.destroy()]).then(() => {}),
  };
}

interface CountedTransport {
  readonly key: string;
  readonly transport: Transport;
  inFlight: number;
}

/**
 * Creates a transport whose options may change between requests, for example after a certificate was renewed: each
 * request uses the current ones. A transport with earlier options is closed after its last request.
 */
export function createCurrentTransport(currentOptions: () => TransportOptions): Transport {
  const open = new Set<CountedTransport>();
  let current = openCurrent();

  function openCurrent(): CountedTransport {
    const options = currentOptions();
    const opened = { key: JSON.stringify(options), transport: createTransport(options), inFlight: 0 };
    open.add(opened);
    return opened;
  }

  function closeIdle(): void {
    for (const transport of open) {
      if (transport === current || transport.inFlight > 0) continue;
      open.delete(transport);
      void transport.transport.close();
    }
  }

  return {
    async request(request, signal) {
      if (current.key !== JSON.stringify(currentOptions())) current = openCurrent();
      const used = current;
      used.inFlight++;
      const outcome = await used.transport.request(request, signal);
      used.inFlight--;
      closeIdle();
      return outcome;
    },
    async close() {
      await Promise.all([...open].map(({ transport }) => transport.close()));
    },
  };
}

function createDispatcher(options: TransportOptions, kind: { pipelining?: 0; allowH2?: false }): Dispatcher {
  const { ca, cert, key, serverName: servername, insecureSkipVerify } = options;
  const tls = { ca, cert, key, servername, ...(insecureSkipVerify === true ? { rejectUnauthorized: false } : {}) };
  const shared = {
    connections: CONNECTIONS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    ...kind,
  };
  const connect = { ...tls, timeout: CONNECT_MS_MAX };
  const { proxy, proxyFromEnvironment } = options;
  const create = (): Dispatcher => {
    if (proxy !== undefined) return new ProxyAgent({ ...shared, uri: proxy, requestTls: tls });
    if (proxyFromEnvironment === true) return new EnvHttpProxyAgent({ ...shared, connect, requestTls: tls });
    return new Agent({ ...shared, connect });
  };
  return create().compose(trackSending);
}

/** Whether a request was passed to a connection. Before that, the server can't have received anything. */
interface RequestProgress {
  isSent: boolean;
  readonly mayBeSent: () => boolean;
}

/**
 * Sets `isSent` in the progress, which undici passes on as `opaque`, when the request is written to its connection, or
 * drops the request if it may not be sent any more.
 */
const trackSending: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const { opaque: progress } = options as { opaque?: RequestProgress };
  return dispatch(options, {
    onRequestStart(controller, context) {
      handler.onRequestStart?.(controller, context);
      if (progress?.mayBeSent() === false) controller.abort(new Error("it may not be sent any more"));
      // A request that was aborted while it waited for its connection is dropped here.
      if (progress !== undefined && !controller.aborted) progress.isSent = true;
    },
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  });
};

type Outcome = Result<TransportResponse, TransportFailure>;

/** Fails immediately if a request is aborted before it is sent. Undici would first wait for its connection. */
function failOnAbortBeforeSending(
  response: Promise<Outcome>,
  progress: RequestProgress,
  signal: AbortSignal,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const onAbort = () => {
      if (!progress.isSent) resolve(fail(unsentFailure));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    void response.then((outcome) => {
      signal.removeEventListener("abort", onAbort);
      resolve(outcome);
    });
  });
}

async function send(
  dispatcher: Dispatcher,
  request: Dispatcher.RequestOptions,
  progress: RequestProgress,
  bodyBytesMax: number,
  signal: AbortSignal,
): Promise<Outcome> {
  if (signal.aborted) return fail(unsentFailure);
  try {
    const reply = await dispatcher.request({ ...request, opaque: progress, signal });
    const body = await readBody(reply.body, bodyBytesMax);
    const response = {
      status: reply.statusCode,
      headers: singleHeaders(reply.headers),
      body: body ?? new Uint8Array(),
    };
    const readable = body === null ? null : await decompress(response, bodyBytesMax);
    if (readable === null) return fail({ kind: "too_large", message: `the body is larger than ${bodyBytesMax} bytes` });
    if (readable.body.byteLength > LARGE_BODY_BYTES) await nextTurn();
    return ok(readable);
  } catch (error) {
    return fail(toTransportFailure(error, progress, signal));
  }
}

async function readBody(stream: Dispatcher.ResponseData["body"], bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop destroys the stream, and its connection with it.
    if (size > bytesMax) return null;
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
}

const gunzipAsync = promisify(gunzip);

/**
 * Decompresses a gzip body. Returns null if the result is larger than `bytesMax`. A body in another encoding, or one
 * that can't be decompressed, is returned as it is with its Content-Encoding header, which {@link readJson} explains.
 */
async function decompress(response: TransportResponse, bytesMax: number): Promise<TransportResponse | null> {
  const { "content-encoding": encoding, "content-length": _, ...headers } = response.headers;
  if (!/^\s*(?:x-)?gzip\s*$/i.test(encoding ?? "") || response.body.byteLength === 0) return response;
  try {
    const chunkSize = Math.max(CHUNK_BYTES_MIN, Math.min(statedSize(response.body) + 1, bytesMax));
    return { ...response, headers, body: await gunzipAsync(response.body, { maxOutputLength: bytesMax, chunkSize }) };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? null : response;
  }
}

/** Smallest buffer into which zlib decompresses. */
const CHUNK_BYTES_MIN = 1_024;

/**
 * Returns the size of the decompressed body, as its last four bytes state it (RFC 1952, section 2.3.1). With one byte
 * more, zlib decompresses it at once and into a single buffer. A wrong size only takes more buffers.
 */
const statedSize = (body: Uint8Array): number =>
  body.byteLength < 4 ? 0 : new DataView(body.buffer, body.byteOffset + body.byteLength - 4, 4).getUint32(0, true);

function singleHeaders(headers: Dispatcher.ResponseData["headers"]): TransportResponse["headers"] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), Array.isArray(value) ? value[0] : value]),
  );
}

const unsentFailure: TransportFailure = {
  kind: "aborted",
  message: "the call was canceled before it was sent",
  unsent: true,
};

/** Error code of undici if an HTTP proxy answers 407 and therefore has not forwarded the request. */
const REFUSED_BY_PROXY = "UND_ERR_INVALID_ARG";

/** Messages for errors that OpenSSL describes with its internals, by code. */
const TLS_MESSAGES = new Map([
  [
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "the server does not use TLS on this port; use an http:// URL (ERR_SSL_WRONG_VERSION_NUMBER)",
  ],
]);

/** Returns `unreachable` only if the request was certainly not sent. Otherwise the service may have received it. */
function toTransportFailure(error: unknown, progress: RequestProgress, signal: AbortSignal): TransportFailure {
  if (signal.aborted) return progress.isSent ? { kind: "aborted", message: "the call was canceled" } : unsentFailure;
  const { code: errorCode, message: errorMessage } = error as { code?: unknown; message?: unknown };
  const code = typeof errorCode === "string" ? errorCode : "";
  const text = typeof errorMessage === "string" && errorMessage !== "" ? errorMessage : String(error);
  const message = TLS_MESSAGES.get(code) ?? (text.includes(code) ? text : `${code}: ${text}`);
  return { kind: progress.isSent && code !== REFUSED_BY_PROXY ? "reset" : "unreachable", message };
}
