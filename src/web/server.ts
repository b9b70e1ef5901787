import type { AddressInfo } from "node:net";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Clock, Log } from "../model/ports.ts";
import { NO_SUCH_PAGE, sendError } from "./answer.ts";
import { ORDER_BYTES_MAX } from "./orders.ts";
import type { Route } from "./route.ts";
import { type WebDeps, webRoutes } from "./routes.ts";

/** A listening web server. */
export interface Web {
  /** Where it listens, as a person on this machine would open it. */
  readonly url: string;
  /** Stops listening, lets answers under way finish for a few seconds, then cuts what is left. */
  close(): Promise<void>;
}

/** Port 0 takes any free one. */
export interface WebOptions {
  readonly host: string;
  readonly port: number;
  readonly deps: WebDeps;
  readonly log: Log;
  readonly clock: Pick<Clock, "sleep" | "monotonic">;
}

/** Only orders read a body, which has a bound of its own; some clients send an empty form all the same. */
const BODY_BYTES_MAX = 65_536;
const HEADER_BYTES_MAX = 16_384;
/** A node's id stands in the path; longer ones are no node's. */
const PATH_PARAMETER_CHARS_MAX = 256;
/** Scrapers, probes and a few people; far more is a mistake, and each may hold an exposition. */
const CONNECTIONS_MAX = 256;
/** For the whole request to arrive. */
const REQUEST_MS_MAX: DurationMs = 10 * SECOND_MS;
/** A reader that takes nothing for so long is gone, and its buffers are wanted back. */
const STALL_MS_MAX: DurationMs = MINUTE_MS;
/** Longer than the usual scrape intervals, so that a scraper keeps its connection. */
const IDLE_MS_MAX: DurationMs = 75 * SECOND_MS;
const CHECK_INTERVAL_MS: DurationMs = 5 * SECOND_MS;
/** SIGTERM is to end in 10 s, and a POST in flight may want 7 of them. */
const CLOSE_MS_MAX: DurationMs = 2 * SECOND_MS;

const commonHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Starts the web server. The error says which address can't be had, and why. */
export async function createWeb({ host, port, deps, log, clock }: WebOptions): Promise<Result<Web, string>> {
  const app = createServer(log);
  for (const route of webRoutes(deps, { log, clock })) addRoute(app, route);
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    const reason = error instanceof Error ? error.message : String(error);
    return fail(`can't listen on ${authority(host, port)}: ${reason}; it must be a free address of this machine`);
  }
  const { address, port: boundPort } = app.server.address() as AddressInfo;
  return ok({ url: `http://${authority(reachable(address), boundPort)}`, close: () => closeServer(app, clock) });
}

function createServer(log: Log): FastifyInstance {
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    connectionTimeout: STALL_MS_MAX,
    keepAliveTimeout: IDLE_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    http: { maxHeaderSize: HEADER_BYTES_MAX, connectionsCheckingInterval: CHECK_INTERVAL_MS },
    routerOptions: { maxParamLength: PATH_PARAMETER_CHARS_MAX },
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(reply);
      return sendError(request, reply, error.statusCode ?? 400, error.message);
    },
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.addHook("onRequest", (_request, reply, done) => {
    setCommonHeaders(reply);
    done();
  });
  app.setNotFoundHandler((request, reply) => sendError(request, reply, 404, NO_SUCH_PAGE));
  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return sendError(request, reply, status, error.message);
    log.error({ method: request.method, path: request.routeOptions.url, error }, "Web request failed.");
    return sendError(request, reply, status, "internal error; the log says more");
  });
  return app;
}

/** Registers a route, and answers every other method on its path with 405. A route that isn't there is 404 by any. */
function addRoute(app: FastifyInstance, { method, path, exists, admits, handle }: Route): void {
  const allowed: string[] = method === "GET" ? ["GET", "HEAD"] : [method];
  const isThere = (request: FastifyRequest, reply: FastifyReply): boolean => {
    if (exists === undefined || exists()) return true;
    sendError(request, reply, 404, NO_SUCH_PAGE);
    return false;
  };
  // Answered before the body is read: what it holds doesn't matter to those who are turned away.
  app.route({
    method,
    url: path,
    bodyLimit: admits === undefined ? BODY_BYTES_MAX : ORDER_BYTES_MAX,
    onRequest: (request, reply, done) => {
      if (isThere(request, reply) && (admits?.(request, reply) ?? true)) done();
    },
    handler: handle,
  });
  app.route({
    method: app.supportedMethods.filter((other) => !allowed.includes(other)),
    url: path,
    onRequest: (request, reply, _done) => {
      if (!isThere(request, reply)) return;
      reply.header("allow", allowed.join(", "));
      sendError(request, reply, 405, `${request.method} is not allowed here, but ${allowed.join(" and ")}`);
    },
    handler: () => undefined,
  });
}

// On the raw response: the exposition is written past Fastify's own headers.
function setCommonHeaders({ raw }: FastifyReply): void {
  for (const [name, value] of Object.entries(commonHeaders)) raw.setHeader(name, value);
}

async function closeServer(app: FastifyInstance, clock: Pick<Clock, "sleep">): Promise<void> {
  const closed = new AbortController();
  const closing = app.close().finally(() => closed.abort());
  await clock.sleep(CLOSE_MS_MAX, closed.signal);
  app.server.closeAllConnections();
  await closing;
}

const authority = (host: string, port: number) => `${host.includes(":") ? `[${host}]` : host}:${port}`;

// A wildcard is an address to listen on, none to connect to.
function reachable(address: string): string {
  if (address === "0.0.0.0") return "127.0.0.1";
  return address === "::" ? "::1" : address;
}
