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
/** Connections kept to the service. The budget is the limit, not the client: more would stand idle. */
const CONNECTIONS_MAX = 4;
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
      ? new Agent({ ...shared, connect: { ...tls, timeout: 0 } })
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

/** Codes of a connection that stood and then broke: the service may have seen the request. */
const brokenCodes = new Set([
  "ECONNRESET",
  "EPIPE",
  "UND_ERR_SOCKET",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_ABORTED",
]);

function failureOf(error: unknown, signal: AbortSignal): TransportFailure {
  if (signal.aborted) return { kind: "aborted", message: "the call was given up" };
  const cause = error as { code?: unknown; message?: unknown; name?: unknown };
  const code = typeof cause.code === "string" ? cause.code : "";
  const told = typeof cause.message === "string" && cause.message !== "" ? cause.message : String(error);
  const message = told.includes(code) ? told : `${code}: ${told}`;
  // HPE_*: what came is no HTTP. Whatever else there is (name, route, refusal, certificate) kept us from connecting.
  const broke = brokenCodes.has(code) || code.startsWith("HPE_") || message.includes("terminated");
  return { kind: broke ? "reset" : "unreachable", message };
}
