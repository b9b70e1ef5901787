import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { WebRefusal } from "../metrics/vocabulary.ts";
import type { Log } from "../model/ports.ts";
import { NO_SUCH_PAGE, sendError } from "./answer.ts";
import type { IsTrustedProxy } from "./client.ts";
import { rawAnswer, setHeaders } from "./headers.ts";

/** Only orders read a body: a reason of 500 characters, each of them escaped, and room to spare. */
export const BODY_BYTES_MAX = 8_192;
const HEADER_BYTES_MAX = 16_384;
/** A node's id stands in the path; longer ones are no node's. */
const PATH_PARAMETER_CHARS_MAX = 256;
/** A reader that takes nothing for this long is cut, and its buffers are freed. */
const STALL_MS_MAX: DurationMs = MINUTE_MS;
/** Longer than the usual scrape intervals, so that a scraper keeps its connection. */
const IDLE_MS_MAX: DurationMs = 75 * SECOND_MS;
/** For the reason to go out, where a connection is closed for one. */
const TELL_MS_MAX: DurationMs = SECOND_MS;

/** What is borne of slow clients, in milliseconds of real time. */
export interface Patience {
  /** For the head of a request to arrive, and for the whole of it. */
  readonly headMs: DurationMs;
  readonly requestMs: DurationMs;
  /** Looked at so often. */
  readonly checkMs: DurationMs;
  /** The longest time for which a reader may take nothing of its answer; it is cut between half of it and all of it. */
  readonly stallMs: DurationMs;
}

/** A request fits into a few packets: who dribbles holds a place that others wait for. */
const PATIENCE: Patience = {
  headMs: 5 * SECOND_MS,
  requestMs: 10 * SECOND_MS,
  checkMs: SECOND_MS,
  stallMs: STALL_MS_MAX,
};

/** What an HTTP server calls. */
export interface HttpServerParts {
  readonly log: Log;
  readonly isTrustedProxy: IsTrustedProxy;
  refused(reason: WebRefusal): void;
}

/** Creates an HTTP server with its limits and its answers to malformed requests, and without routes. */
export function createHttpServer(
  { log, isTrustedProxy, refused }: HttpServerParts,
  { headMs, requestMs, checkMs, stallMs }: Patience = PATIENCE,
): FastifyInstance {
  const refuse = (request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply => {
    refused("malformed");
    setHeaders(reply.raw, {});
    // It went past all limits but those on connections.
    reply.header("connection", "close");
    return sendError(request, reply, status, message);
  };
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    trustProxy: (address) => isTrustedProxy(address),
    connectionTimeout: stallMs,
    keepAliveTimeout: IDLE_MS_MAX,
    requestTimeout: requestMs,
    http: {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: headMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
      // Checked below: Node's own answer has none of our headers, and is counted nowhere.
      requireHostHeader: false,
    },
    routerOptions: { maxParamLength: PATH_PARAMETER_CHARS_MAX },
    frameworkErrors: (error, request, reply) => refuse(request, reply, error.statusCode ?? 400, error.message),
    clientErrorHandler: (error, socket) => {
      refused("malformed");
      answerMalformed(error, socket);
    },
  });
  app.addHook("onRequest", (request, reply, done) => {
    if (hasOneHost(request)) done();
    else refuse(request, reply, 400, "the request must have one Host header, with a host and maybe a port");
  });
  app.server.on("checkExpectation", (_request, response: ServerResponse) => {
    refused("malformed");
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
  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status === 413) return sendError(request, reply, 413, tooLarge(request.routeOptions.bodyLimit));
    if (status < 500) return sendError(request, reply, status, error.message);
    log.error({ method: request.method, path: request.routeOptions.url, error }, "Web request failed.");
    return sendError(request, reply, status, "internal error; the log says more");
  });
  return app;
}

/**
 * Limits how long the reader of an answer may take nothing of it. Called when the answer is about to be written. Half the
 * time is given to the socket: its timer starts again once where the system took any part of the answer meanwhile, as it
 * always does of the first part.
 */
export function limitStall(response: Pick<ServerResponse, "setTimeout">, stallMs = STALL_MS_MAX): void {
  response.setTimeout(stallMs / 2);
}

const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/i;

/** Whether there is exactly one Host header, and it is valid (RFC 9112, section 3.2). HTTP/1.0 may go without one. */
function hasOneHost({ raw }: FastifyRequest): boolean {
  const hosts = raw.headersDistinct.host ?? [];
  return hosts.length === 0 ? raw.httpVersion === "1.0" : hosts.length === 1 && HOST.test(hosts[0]!);
}

/** What never became a request: the connection can't be read on, so it is told why, and closed. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  // Whatever else broke, there is nobody to tell.
  if (!/^(?:HPE|ERR_HTTP)_/.test(error.code ?? "") || !socket.writable) {
    socket.destroy();
    return;
  }
  const answers: Readonly<Record<string, readonly [status: number, phrase: string, line: string]>> = {
    HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", `the head may have ${HEADER_BYTES_MAX} bytes`],
    ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "the request takes too long to arrive"],
  };
  const [status, phrase, line] = answers[error.code ?? ""] ?? [400, "Bad Request", "that is no HTTP/1.1 request"];
  socket.setTimeout(TELL_MS_MAX, () => socket.destroy());
  socket.end(rawAnswer(status, phrase, line), () => socket.destroy());
}

const tooLarge = (bytesMax = BODY_BYTES_MAX): string => `the body is too large; it may have ${bytesMax} bytes`;
