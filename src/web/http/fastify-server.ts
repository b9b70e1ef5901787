import { METHODS, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Log } from "../../model/ports.ts";
import { NO_SUCH_PAGE, rawResponse, sendError, setHeaders } from "./response.ts";
import type { WebContext } from "./route.ts";

/** Only operator commands have a body. It contains a reason of up to 500 characters, each of which may be escaped. */
const BODY_BYTES_MAX = 8_192;
const HEADER_BYTES_MAX = 16_384;
/** Maximum length of a path parameter, which is the maximum length of a node id. */
const PATH_PARAMETER_CHARS_MAX = 256;
const PATH_TOO_LONG = `a part of the path has more than ${PATH_PARAMETER_CHARS_MAX} characters`;
/** Timeout of idle connections, longer than usual scrape intervals so that scrapers keep their connections. */
const IDLE_MS_MAX: DurationMs = 75 * SECOND_MS;
/** Time for the error response of a malformed request to be sent. */
const ERROR_RESPONSE_MS_MAX: DurationMs = SECOND_MS;

/**
 * Timeouts of slow clients. A request fits into a few packets, and a slow client holds a connection that others may
 * need.
 */
const HTTP_TIMEOUTS = {
  /** Timeouts of the headers of a request and of the whole request. */
  headMs: 5 * SECOND_MS,
  requestMs: 10 * SECOND_MS,
  /** Interval at which the two above are checked. */
  checkMs: SECOND_MS,
  /**
   * Timeout of a client that reads nothing of its response. It is disconnected after half to all of this time, and its
   * buffers are freed.
   */
  stallMs: MINUTE_MS,
};
export type HttpTimeouts = Readonly<typeof HTTP_TIMEOUTS>;

/**
 * Creates an HTTPS server, or an HTTP server if `tls` is null, with its limits and error responses, and without routes.
 */
export function createHttpServer(
  { log, isTrustedProxy, countRefusal }: Pick<WebContext, "log" | "isTrustedProxy" | "countRefusal">,
  tls: TlsOptions | null,
  { headMs, requestMs, checkMs, stallMs }: HttpTimeouts = HTTP_TIMEOUTS,
): FastifyInstance {
  const refuseMalformed = (request: FastifyRequest, reply: FastifyReply, status: number, message: string) => {
    countRefusal("malformed");
    setHeaders(reply.raw, {});
    // The limits on requests do not count malformed ones, but the limit on new connections applies.
    reply.header("connection", "close");
    return sendError(request, reply, status, message);
  };
  const http = {
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: headMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: checkMs,
    // Checked below: Node's own error response lacks our headers and is not counted.
    requireHostHeader: false,
  };
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    trustProxy: (address) => isTrustedProxy(address),
    // Fastify's own error response lacks our headers, and the routes can answer until the daemon has stopped.
    return503OnClosing: false,
    connectionTimeout: stallMs,
    keepAliveTimeout: IDLE_MS_MAX,
    requestTimeout: requestMs,
    ...(tls === null ? { http } : { https: { ...tls, ...http } }),
    routerOptions: { maxParamLength: PATH_PARAMETER_CHARS_MAX },
    frameworkErrors: ({ statusCode = 400, message }, request, reply) =>
      refuseMalformed(request, reply, statusCode, statusCode === 414 ? PATH_TOO_LONG : message),
    clientErrorHandler: (error, socket) => {
      if (isMalformed(error)) countRefusal("malformed");
      answerMalformed(error, socket);
    },
  });
  // Methods that Fastify does not know would be answered 404 instead of 405, and QUERY without a content type 400.
  for (const method of METHODS) if (method !== "POST") app.addHttpMethod(method, { overrideExisting: true });
  app.addHook("onRequest", (request, reply, done) => {
    // Every body is read as JSON, but Fastify rejects an invalid content type.
    delete request.headers["content-type"];
    if (hasOneHost(request)) done();
    else refuseMalformed(request, reply, 400, "the request must have exactly one valid Host header");
  });
  app.server.on("checkExpectation", (_request, response: ServerResponse) => {
    countRefusal("malformed");
    setHeaders(response, { connection: "close" });
    response.writeHead(417).end();
  });
  app.addHook("onSend", (_request, reply, payload, done) => {
    limitStall(reply.raw, stallMs);
    done(null, payload);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setNotFoundHandler((request, reply) => sendError(request, reply, 404, NO_SUCH_PAGE));
  app.setErrorHandler<RequestError>((error, request, reply) => answerFailure(log, error, request, reply));
  return app;
}

type RequestError = Error & { readonly statusCode?: number };

function answerFailure(log: Log, error: RequestError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status === 413) return sendError(request, reply, 413, `the body exceeds ${BODY_BYTES_MAX} bytes`);
  if (status < 500) return sendError(request, reply, status, error.message);
  const fields = { method: request.method, path: request.routeOptions.url };
  if (status === 503) {
    // The response has the reason, and a client may ask again and again while the failure lasts.
    log.debug({ ...fields, problem: error.message }, "web request failed");
    return sendError(request, reply, 503, error.message);
  }
  log.error({ ...fields, err: error }, "web request failed");
  return sendError(request, reply, status, "internal error; see the daemon's log");
}

/**
 * Disconnects a client that reads nothing of a response for half to all of `stallMs`. Call it before the response is
 * written. The socket's timer is set to half, because it restarts once after the operating system has buffered the
 * first part.
 */
export function limitStall(response: Pick<ServerResponse, "setTimeout">, stallMs = HTTP_TIMEOUTS.stallMs): void {
  response.setTimeout(stallMs / 2);
}

const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/i;

/** Returns whether there is exactly one Host header and it is valid (RFC 9112, section 3.2). HTTP/1.0 requires none. */
function hasOneHost({ raw }: FastifyRequest): boolean {
  const hosts = raw.headersDistinct.host ?? [];
  return hosts.length === 0 ? raw.httpVersion === "1.0" : hosts.length === 1 && HOST.test(hosts[0]!);
}

const BAD_REQUEST = rawResponse(400, "malformed HTTP request");
const MALFORMED_RESPONSES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: rawResponse(431, `the request headers exceed ${HEADER_BYTES_MAX} bytes`),
  ERR_HTTP_REQUEST_TIMEOUT: rawResponse(408, "the request was not received in time"),
};

/** Returns whether a request is the cause of an error. Other errors are those of a connection, which a client may reset. */
const isMalformed = ({ code = "" }: NodeJS.ErrnoException): boolean => /^(?:HPE|ERR_HTTP)_/.test(code);

/** Answers a malformed request, if there is one, and closes the connection. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!isMalformed(error) || !socket.writable) {
    socket.destroy();
    return;
  }
  socket.setTimeout(ERROR_RESPONSE_MS_MAX, () => socket.destroy());
  socket.end(MALFORMED_RESPONSES[error.code ?? ""] ?? BAD_REQUEST, () => socket.destroy());
}
