import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent } from "undici";
import { fail, ok, type Result } from "../base/result.ts";
import type { Transport, TransportFailure, TransportResponse } from "../model/ports.ts";
import { IN_FLIGHT_MAX } from "../rate-limit/concurrency.ts";
import { ACCEPTED_ENCODING, decompress } from "./compression.ts";

/** Where a server is, and how to get there. */
export interface TransportOptions {
  /** `https://host` with an optional path, which goes before the path of every request. */
  readonly baseUrl: string;
  /** PEM certificates to trust beside none other; absent: the system's. */
  readonly ca?: string;
  /** PEM certificate to show to the server, and its key; absent: none is shown. */
  readonly cert?: string;
  readonly key?: string;
  /** Name that the server's certificate must carry; absent: the URL's host. */
  readonly serverName?: string;
  /** Whether any certificate will do; false if absent. */
  readonly insecureSkipVerify?: boolean;
  /** HTTP proxy to go through; absent: none, or that of the environment. */
  readonly proxy?: string;
  /** Whether HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment name the proxy; false if absent. */
  readonly proxyFromEnvironment?: boolean;
}

/** Largest body that is read, 16 MiB, decompressed or not: a page of 10,000 records is a quarter of it, and nothing else comes near. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024;
/** As many as the collectors ever have under way, so that no call's time-out runs while it waits for a connection. */
const CONNECTIONS_MAX = 4 * IN_FLIGHT_MAX;
/** A connection that takes longer to come about is tried anew by the next call. */
const CONNECT_MS_MAX = 10_000;
/** An idle connection is kept this long: longer than the wait between two calls of a paced poller. */
const KEEP_ALIVE_MS = 60_000;

/**
 * A transport over undici. Time-outs are the caller's, through the signal, so undici's own are off. A POST never goes out
 * twice: it has a connection of its own, so none that the server is about to close as idle, and speaks HTTP/1.1, for
 * undici sends a stream of HTTP/2 again where the server says that it has not touched it.
 */
export function createTransport(options: TransportOptions): Transport {
  const base = new URL(options.baseUrl);
  const prefix = base.pathname.replace(/\/+$/, "");
  const reading = createDispatcher(options, {});
  const posting = createDispatcher(options, { pipelining: 0, allowH2: false });
  return {
    request(request, signal) {
      const { method, path, headers, body = null } = request;
      const flight: RequestProgress = { isSent: false };
      const accepting = { "accept-encoding": ACCEPTED_ENCODING, ...headers };
      const sending = { origin: base.origin, path: prefix + path, method, headers: accepting, body };
      return sendOnce(send(method === "POST" ? posting : reading, sending, flight, signal), flight, signal);
    },
    close: () => Promise.all([reading.destroy(), posting.destroy()]).then(() => {}),
  };
}

function createDispatcher(options: TransportOptions, kind: { pipelining?: 0; allowH2?: false }): Dispatcher {
  const { ca, cert, key, serverName } = options;
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(options.insecureSkipVerify === true ? { rejectUnauthorized: false } : {}),
  };
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

/** Whether a request was handed to a connection. Until then the server can't have seen anything of it. */
interface RequestProgress {
  isSent: boolean;
}

/** Notes in the flight, which travels as `opaque`, that the request is written to its connection now. */
const trackSending: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const { opaque: flight } = options as { opaque?: RequestProgress };
  return dispatch(options, {
    onRequestStart(controller, context) {
      handler.onRequestStart?.(controller, context);
      // One that was aborted while it waited for its connection is dropped here, and never written.
      if (flight !== undefined && !controller.aborted) flight.isSent = true;
    },
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  });
};

type Outcome = Result<TransportResponse, TransportFailure>;

/** Ends the wait at once where a request is aborted before it was sent: undici tells only once a connection came about. */
function sendOnce(exchange: Promise<Outcome>, flight: RequestProgress, signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve) => {
    const onAbort = () => {
      if (!flight.isSent) resolve(fail(unsentFailure));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    void exchange.then((outcome) => {
      signal.removeEventListener("abort", onAbort);
      resolve(outcome);
    });
  });
}

async function send(
  dispatcher: Dispatcher,
  request: Dispatcher.RequestOptions,
  flight: RequestProgress,
  signal: AbortSignal,
): Promise<Outcome> {
  if (signal.aborted) return fail(unsentFailure);
  try {
    const reply = await dispatcher.request({ ...request, opaque: flight, signal });
    const body = await readBody(reply.body);
    const response = {
      status: reply.statusCode,
      headers: singleHeaders(reply.headers),
      body: body ?? new Uint8Array(),
    };
    const readable = body === null ? null : await decompress(response, BODY_BYTES_MAX);
    return readable === null ? fail(tooLargeFailure) : ok(readable);
  } catch (error) {
    return fail(toTransportFailure(error, flight, signal));
  }
}

async function readBody(stream: Dispatcher.ResponseData["body"]): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop destroys the stream, and its connection with it.
    if (size > BODY_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
}

function singleHeaders(headers: Dispatcher.ResponseData["headers"]): TransportResponse["headers"] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), Array.isArray(value) ? value[0] : value]),
  );
}

const tooLargeFailure: TransportFailure = {
  kind: "too_large",
  message: `the body is larger than ${BODY_BYTES_MAX} bytes, and was dropped`,
};

const unsentFailure: TransportFailure = {
  kind: "aborted",
  message: "the call was given up before it was sent",
  unsent: true,
};

/** What undici says where an HTTP proxy answers 407: it has passed nothing on. */
const REFUSED_BY_PROXY = "UND_ERR_INVALID_ARG";

/** Only what surely came before the request is `unreachable`: after anything else the service may have seen it. */
function toTransportFailure(error: unknown, flight: RequestProgress, signal: AbortSignal): TransportFailure {
  if (signal.aborted) return flight.isSent ? { kind: "aborted", message: "the call was given up" } : unsentFailure;
  const cause = error as { code?: unknown; message?: unknown };
  const code = typeof cause.code === "string" ? cause.code : "";
  const causeMessage = typeof cause.message === "string" && cause.message !== "" ? cause.message : String(error);
  const message = causeMessage.includes(code) ? causeMessage : `${code}: ${causeMessage}`;
  return { kind: flight.isSent && code !== REFUSED_BY_PROXY ? "reset" : "unreachable", message };
}
