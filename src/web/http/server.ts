import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { Clock } from "../../model/ports.ts";
import { queryProblem } from "../api/query.ts";
import { webRoutes } from "../api/routes.ts";
import { createRequestAuthorizer } from "./auth/request-authorizer.ts";
import { limitConnections, type OpenConnections } from "./connection-limits.ts";
import { createHttpServer } from "./fastify-server.ts";
import { listenProblem, webUrl } from "./listen-address.ts";
import { NO_SUCH_PAGE, type Refusal, refuse, sendError, setHeaders } from "./response.ts";
import { createWebContext, type Route, type WebContext, type WebServerOptions } from "./route.ts";
import type { LoadedWebSettings } from "./web-settings.ts";

/** A listening web server. */
export interface WebServer {
  /** The URL at which this host reaches the server. */
  readonly url: string;
  /**
   * Applies other settings to new connections, and to the next request of each open one. They must have TLS if and only
   * if the current ones do.
   */
  applySettings(webSettings: LoadedWebSettings): void;
  /** Stops listening, waits up to `graceMs` for responses under way, then closes all connections. */
  close(graceMs: DurationMs): Promise<void>;
}

/**
 * Starts the web server on one address: a host name is resolved once, and its first address is used. The error names the
 * address that can't be used and the reason.
 */
export async function startWebServer(options: WebServerOptions): Promise<Result<WebServer, string>> {
  const { host, port, clock } = options;
  const context = createWebContext(options);
  const tls = context.webSettings.current().tls?.options ?? null;
  const app = createHttpServer(context, tls);
  const routes = webRoutes(context);
  addRoutes(app, routes, context);
  const connections = limitConnections(app.server, context);
  app.addHook("preClose", (done) => {
    for (const route of routes) route.close?.();
    done();
  });
  try {
    await app.ready();
    // Not by app.listen: it reads the network interfaces, which the systemd unit does not allow, and for localhost it
    // starts a second server, without the limits and the client certificates of this one.
    app.server.listen({ host, port });
    await once(app.server, "listening");
  } catch (error) {
    await app.close();
    return fail(listenProblem(host, port, error, "choose a free address of this host"));
  }
  context.webSettings.exportMetrics();
  const { address, port: boundPort } = app.server.address() as AddressInfo;
  return ok({
    url: webUrl(tls !== null, address, boundPort),
    applySettings: context.webSettings.replace,
    close: (graceMs) => closeServer(app, connections, clock, graceMs),
  });
}

function addRoutes(app: FastifyInstance, routes: readonly Route[], context: WebContext): void {
  const authorize = createRequestAuthorizer(context);
  const byPath = new Map(routes.map((route) => [route.path, route]));
  app.addHook("onRequest", async (request, reply) => {
    setHeaders(reply.raw, context.webSettings.current().headers);
    const isAllowed = await authorize(request, reply, byPath.get(request.routeOptions.url ?? ""));
    // A returned reply tells Fastify that the request has been answered.
    return isAllowed ? undefined : reply;
  });
  for (const route of routes) addRoute(app, route, context);
}

/**
 * Registers a route, and answers every other method on its path with 405, or with 404 while the route does not exist.
 */
function addRoute(app: FastifyInstance, route: Route, context: WebContext): void {
  const { method, path, authorize } = route;
  const parameters = route.parameters ?? (path.startsWith("/api/") ? [] : undefined);
  const allowed: string[] = method === "GET" ? ["GET", "HEAD"] : [method];
  const isAvailable = (request: FastifyRequest, reply: FastifyReply): boolean => {
    if (route.exists?.() ?? true) return true;
    sendError(request, reply, 404, NO_SUCH_PAGE);
    return false;
  };
  app.route({
    method,
    url: path,
    // Runs before the body is read.
    onRequest(request, reply, done) {
      if (!isAvailable(request, reply) || authorize?.(request, reply) === false) return;
      const problem = parameters === undefined ? null : queryProblem(request.query as object, parameters);
      if (problem === null) done();
      else sendError(request, reply, 400, problem);
    },
    handler: queued(route, context),
  });
  app.route({
    method: app.supportedMethods.filter((other) => !allowed.includes(other)),
    url: path,
    onRequest(request, reply) {
      if (!isAvailable(request, reply)) return;
      reply.header("allow", allowed.join(", "));
      sendError(request, reply, 405, `${request.method} is not allowed here; allowed: ${allowed.join(" and ")}`);
    },
    handler: () => undefined,
  });
}

const QUEUE_FULL: Refusal = {
  reason: "busy",
  status: 503,
  retryAfterMs: SECOND_MS,
  message: "too many requests are queued; try again later",
};

/** Queues GET requests to the API, which take much CPU time for a large fleet. Operator commands are not queued. */
function queued({ method, path, handle }: Route, { requestQueue, countRefusal }: WebContext): Route["handle"] {
  if (method !== "GET" || !path.startsWith("/api/")) return handle;
  return async (request, reply) => {
    const turn = requestQueue.enter();
    if (turn === null) {
      refuse(request, reply, QUEUE_FULL, countRefusal);
      return reply;
    }
    await turn;
    // The client has disconnected. Processing its request would only delay other clients.
    if (request.raw.socket.destroyed) return reply.hijack();
    return handle(request, reply);
  };
}

async function closeServer(
  app: FastifyInstance,
  connections: OpenConnections,
  clock: Pick<Clock, "sleep">,
  graceMs: DurationMs,
): Promise<void> {
  const closed = new AbortController();
  const closing = app.close().finally(() => closed.abort());
  connections.closeHandshakes();
  await clock.sleep(graceMs, closed.signal);
  connections.closeAll();
  await closing;
}
