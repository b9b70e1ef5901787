import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { fail, ok, type Result } from "../base/result.ts";
import type { ServiceRequest, ServiceResponse, Transport, TransportFailure } from "../model/ports.ts";

/** Where the service is, and how to get there. */
export interface TransportOptions {
  /** `https://host` with an optional path before `/v1`. */
  readonly baseUrl: string;
  /** PEM certificates to trust beside none other; absent: the system's. */
  readonly ca?: string;
  /** HTTP proxy to go through; absent: straight. */
  readonly proxy?: string;
}

/** Largest body that is read, 16 MiB: a page of 10,000 records is a quarter of it, and nothing else comes near. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024;
/** As many as the collectors ever have under way, so that no call's time-out runs while it waits for a connection. */
const CONNECTIONS_MAX = 16;
/** A connection that takes longer to come about is tried anew by the next call. */
const CONNECT_MS_MAX = 10_000;
/** An idle connection is kept this long: longer than the wait between two calls of a paced poller. */
const KEEP_ALIVE_MS = 60_000;

/** A transport over undici. Time-outs are the caller's, through the signal, so undici's own are off. */
export function createTransport(options: TransportOptions): Transport {
  const base = new URL(options.baseUrl);
  const prefix = base.pathname.replace(/\/+$/, "");
  const tls = options.ca === undefined ? {} : { ca: options.ca };
  const shared = {
    connections: CONNECTIONS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const dispatcher: Dispatcher =
    options.proxy === undefined
      ? new Agent({ ...shared, connect: { ...tls, timeout: CONNECT_MS_MAX } })
      : new ProxyAgent({ ...shared, uri: options.proxy, requestTls: tls });

  return {
    request: (request, signal) => send(dispatcher, base.origin, prefix, request, signal),
    close: () => dispatcher.destroy(),
  };
}

async function send(
  dispatcher: Dispatcher,
  origin: string,
  prefix: string,
  request: ServiceRequest,
  signal: AbortSignal,
): Promise<Result<ServiceResponse, TransportFailure>> {
  try {
    const reply = await dispatcher.request({
      origin,
      path: prefix + request.path,
      method: request.method,
      headers: { ...request.headers },
      body: request.body ?? null,
      signal,
    });
    const body = await readBody(reply.body);
    if (body === null) {
      return fail({ kind: "too_large", message: `the body is larger than ${BODY_BYTES_MAX} bytes, and was dropped` });
    }
    return ok({ status: reply.statusCode, headers: singleHeaders(reply.headers), body });
  } catch (error) {
    return fail(failureOf(error, signal));
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

function singleHeaders(headers: Dispatcher.ResponseData["headers"]): ServiceResponse["headers"] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), Array.isArray(value) ? value[0] : value]),
  );
}

/** Codes, beside those of names, routes and refusals, of a connection that never came about. */
const unreachableCode =
  /^(UND_ERR_CONNECT_TIMEOUT|UND_ERR_INVALID_ARG|CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;
const unreachableCalls: ReadonlySet<unknown> = new Set(["connect", "getaddrinfo"]);

/** Only what surely came before the request is `unreachable`: after anything else the service may have seen it. */
function failureOf(error: unknown, signal: AbortSignal): TransportFailure {
  if (signal.aborted) return { kind: "aborted", message: "the call was given up" };
  const cause = error as { code?: unknown; message?: unknown; syscall?: unknown };
  const code = typeof cause.code === "string" ? cause.code : "";
  const told = typeof cause.message === "string" && cause.message !== "" ? cause.message : String(error);
  const message = told.includes(code) ? told : `${code}: ${told}`;
  const neverCame = unreachableCalls.has(cause.syscall) || unreachableCode.test(code);
  return { kind: neverCame ? "unreachable" : "reset", message };
}
