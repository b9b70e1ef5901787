import type { Socket } from "node:net";
import { type FastifyInstance, fastify } from "fastify";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { WebRefusal } from "../metrics/vocabulary.ts";
import type { Log } from "../model/ports.ts";
import { NO_SUCH_PAGE, sendError } from "./answer.ts";
import { rawAnswer, setHeaders } from "./headers.ts";

/** Only orders read a body, which has a bound of its own; some clients send an empty form all the same. */
export const BODY_BYTES_MAX = 65_536;
const HEADER_BYTES_MAX = 16_384;
/** A node's id stands in the path; longer ones are no node's. */
const PATH_PARAMETER_CHARS_MAX = 256;
/** A reader that takes nothing for so long is gone, and its buffers are wanted back. */
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
}

/** A request fits into a few packets: who dribbles holds a place that others wait for. */
const PATIENCE: Patience = { headMs: 5 * SECOND_MS, requestMs: 10 * SECOND_MS, checkMs: SECOND_MS };

/** An HTTP server with its bounds and the answers of what goes wrong, and without routes. */
export function createHttpServer(
  log: Log,
  refused: (reason: WebRefusal) => void,
  { headMs, requestMs, checkMs }: Patience = PATIENCE,
): FastifyInstance {
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    connectionTimeout: STALL_MS_MAX,
    keepAliveTimeout: IDLE_MS_MAX,
    requestTimeout: requestMs,
    http: {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: headMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
    },
    routerOptions: { maxParamLength: PATH_PARAMETER_CHARS_MAX },
    frameworkErrors: (error, request, reply) => {
      refused("malformed");
      setHeaders(reply.raw, {});
      // It went past all limits but those on connections.
      reply.header("connection", "close");
      return sendError(request, reply, error.statusCode ?? 400, error.message);
    },
    clientErrorHandler: (error, socket) => {
      refused("malformed");
      answerMalformed(error, socket);
    },
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
