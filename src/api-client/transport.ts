import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent } from "undici";
import { fail, ok, type Result } from "../base/result.ts";
import { NODE_CA_ADVICE } from "../base/text.ts";
import type { Transport, TransportFailure, TransportResponse } from "../model/ports.ts";
import { IN_FLIGHT_MAX } from "../rate-limit/collector-concurrency.ts";
import { ACCEPTED_ENCODING } from "./json-body.ts";

/** How to reach a server. */
export interface TransportOptions {
  /** `https://host` with an optional path prefix. */
  readonly baseUrl: string;
  /** PEM CA certificates to trust instead of those that Node.js contains. */
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
/** Time limit to open a connection. */
const CONNECT_MS_MAX = 10_000;
/** Time for which idle connections are kept, which is longer than the wait between two calls at a slow pace. */
const KEEP_ALIVE_MS = 60_000;

/**
 * Creates a transport over undici. Callers set timeouts through the signal, so those of undici are off. It uses
 * HTTP/1.1: with a rationed API, HTTP/2 saves nothing, one closed connection fails several requests, and undici resends
 * a POST that the server has not processed. A POST is never sent twice: each uses a new connection, which the server
 * can't be closing as idle at that moment.
 */
export function createTransport(options: TransportOptions): Transport {
  const base = new URL(options.baseUrl);
  const prefix = base.pathname.replace(/\/+$/, "");
  const { bodyBytesMax = BODY_BYTES_MAX } = options;
  const reading = createDispatcher(options);
  const posting = createDispatcher(options);
  return {
    request(request, signal) {
      const { method, path, headers, body = null, mayBeSent = () => true } = request;
      const isPost = method === "POST";
      const exchange = new Exchange({ mayBeSent, bodyBytesMax, signal });
      return exchange.run(isPost ? posting : reading, {
        origin: base.origin,
        path: prefix + path,
        method,
        headers: { "accept-encoding": ACCEPTED_ENCODING, ...headers },
        body,
        // Whether to close the connection after the response.
        reset: isPost,
      });
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

function createDispatcher(options: TransportOptions): Dispatcher {
  const { ca, cert, key, serverName: servername, insecureSkipVerify } = options;
  const tls = { ca, cert, key, servername, ...(insecureSkipVerify === true ? { rejectUnauthorized: false } : {}) };
  const shared = {
    connections: CONNECTIONS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  };
  const connect = { ...tls, timeout: CONNECT_MS_MAX };
  const { proxy, proxyFromEnvironment } = options;
  const overProxy = { ...shared, requestTls: tls, proxyTls: { allowH2: false } };
  if (proxy !== undefined) return new ProxyAgent({ ...overProxy, uri: proxy });
  if (proxyFromEnvironment === true) return new EnvHttpProxyAgent({ ...overProxy, connect });
  return new Agent({ ...shared, connect });
}

type Outcome = Result<TransportResponse, TransportFailure>;

interface ExchangeOptions {
  readonly mayBeSent: () => boolean;
  readonly bodyBytesMax: number;
  readonly signal: AbortSignal;
}

/** Maximum memory for a body before it arrives. Most pages of a thousand records are smaller. */
const STATED_BYTES_MAX = 524_288;

/**
 * One request and its response, as a handler of undici's `dispatch`. Its `request` creates a stream per body, which
 * doubles the time that a small response takes, and leaves kilobytes that only a collection of the whole heap frees.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #received = Promise.withResolvers<Outcome>();
  /**
   * The body so far, in its first bytes. It begins with the length that Content-Length states, because growing it takes
   * half as long as parsing it. Chunks are copied at once: those that are kept until the response is complete become old,
   * and then only a major collection frees them.
   */
  #body = new ArrayBuffer(0);
  #bytes = 0;
  #head: Pick<TransportResponse, "status" | "headers"> = { status: 0, headers: {} };
  /** Null until the request is passed to a connection. Before that, the server can't have received anything. */
  #controller: Dispatcher.DispatchController | null = null;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  async run(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions): Promise<Outcome> {
    const { bodyBytesMax, signal } = this.#options;
    if (signal.aborted) return fail(unsentFailure);
    signal.addEventListener("abort", this.#onAbort);
    try {
      dispatcher.dispatch(request, this);
      const received = await this.#received.promise;
      return received.ok ? await decompress(received.value, bodyBytesMax) : received;
    } catch (error) {
      return this.#failure(error);
    } finally {
      signal.removeEventListener("abort", this.#onAbort);
    }
  }

  /** Fails immediately if the request is not sent yet. Undici would first wait for its connection. */
  readonly #onAbort = () => {
    if (this.#controller === null) this.#received.resolve(fail(unsentFailure));
    else this.#controller.abort(new Error("the call was canceled"));
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { mayBeSent, signal } = this.#options;
    // A request that was aborted while it waited for its connection is dropped here.
    if (signal.aborted || !mayBeSent()) controller.abort(new Error("it was not sent: this daemon's lease has ended"));
    else this.#controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    this.#head = { status, headers: singleHeaders(headers) };
    const statedBytes = Number(this.#head.headers["content-length"] ?? 0);
    this.#body = new ArrayBuffer(Math.min(statedBytes, STATED_BYTES_MAX));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const { bodyBytesMax } = this.#options;
    const start = this.#bytes;
    this.#bytes += chunk.byteLength;
    if (this.#bytes > bodyBytesMax) {
      this.#received.resolve(tooLarge(bodyBytesMax));
      controller.abort(new Error("the body is too large"));
      return;
    }
    if (this.#bytes > this.#body.byteLength)
      this.#body = this.#body.transfer(Math.max(this.#bytes, 2 * this.#body.byteLength));
    new Uint8Array(this.#body).set(chunk, start);
  }

  onResponseEnd(): void {
    this.#received.resolve(ok({ ...this.#head, body: new Uint8Array(this.#body, 0, this.#bytes) }));
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    // The head of a 429 suffices. It says that the request was not executed, and when to send the next one.
    if (this.#head.status === 429) this.onResponseEnd();
    else this.#received.resolve(this.#failure(error));
  }

  /** Returns `unreachable` only if the request was certainly not sent. Otherwise the service may have received it. */
  #failure(error: unknown): Outcome {
    const isSent = this.#controller !== null;
    if (this.#options.signal.aborted)
      return fail(isSent ? { kind: "aborted", message: "the call was canceled" } : unsentFailure);
    const { code: errorCode, message: errorMessage } = error as { code?: unknown; message?: unknown };
    const code = typeof errorCode === "string" ? errorCode : "";
    const full = typeof errorMessage === "string" && errorMessage !== "" ? errorMessage : String(error);
    const text = full.replace(NODE_CA_ADVICE, "");
    const message = TLS_MESSAGES.get(code) ?? (text.includes(code) ? text : `${code}: ${text}`);
    return fail({ kind: isSent && code !== REFUSED_BY_PROXY ? "reset" : "unreachable", message });
  }
}

const tooLarge = (bytesMax: number): Outcome =>
  fail({ kind: "too_large", message: `the body is larger than ${bytesMax} bytes` });

const gunzipAsync = promisify(gunzip);

/**
 * Decompresses a gzip body. Fails if the result is larger than `bytesMax`. A body in another encoding, or one that can't
 * be decompressed, is returned as it is with its Content-Encoding header, which {@link readJson} explains.
 */
async function decompress(response: TransportResponse, bytesMax: number): Promise<Outcome> {
  const { "content-encoding": encoding, "content-length": _, ...headers } = response.headers;
  if (!/^\s*(?:x-)?gzip\s*$/i.test(encoding ?? "") || response.body.byteLength === 0) return ok(response);
  try {
    const chunkSize = Math.max(CHUNK_BYTES_MIN, Math.min(statedSize(response.body) + 1, bytesMax));
    const body = await gunzipAsync(response.body, { maxOutputLength: bytesMax, chunkSize });
    return ok({ ...response, headers, body });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? tooLarge(bytesMax) : ok(response);
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

type Headers = Dispatcher.ResponseData["headers"];

/** Returns headers with the values of a repeated one in a list (RFC 9110, section 5.3). */
function singleHeaders(headers: Headers): TransportResponse["headers"] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value.join(", ") : value,
    ]),
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
