import type { AddressInfo } from "node:net";
import { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { DurationMs } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../../model/ports.ts";
import { type WebDeps, webRoutes } from "../api/routes.ts";
import { hostAndPort, webUrl } from "./address.ts";
import { createUserAuth } from "./auth/basic-auth.ts";
import { type Bcrypt, createBcrypt } from "./auth/bcrypt.ts";
import { createOperatorAuth } from "./auth/bearer-token.ts";
import type { IsTrustedProxy } from "./client-address.ts";
import { NO_SUCH_PAGE, sendError } from "./error-response.ts";
import { createHttpServer } from "./fastify-server.ts";
import {
  type ConnectionLimiter,
  type ConnectionLimiterDeps,
  createConnectionLimiter,
} from "./limits/connection-limiter.ts";
import { createRequestAuthorizer, type RequestAuthorizer } from "./limits/request-admission.ts";
import { createRequestQueue, type RequestQueue } from "./limits/request-queue.ts";
import type { Route } from "./route.ts";
import { setHeaders } from "./security-headers.ts";
import { type LiveWebSettings, type LoadedWebSettings, OPEN_WEB_SETTINGS, watchWebSettings } from "./web-settings.ts";

/** A listening web server. */
export interface WebServer {
  /** Where it listens now, as a person on this machine would open it. */
  readonly url: string;
  /** Puts other terms in force: for new connections, and for the next request of each. */
  applySettings(webSettings: LoadedWebSettings): void;
  /** Stops listening, waits up to `graceMs` for responses under way, then closes all connections. */
  close(graceMs: DurationMs): Promise<void>;
}

/** Port 0 takes any free one. */
export interface WebServerOptions {
  readonly host: string;
  readonly port: number;
  readonly deps: WebDeps;
  readonly log: Log;
  readonly clock: Pick<Clock, "sleep" | "monotonic">;
  readonly metrics: Pick<DaemonMetrics, "inc" | "set">;
  /** Absent: plain HTTP for everybody. */
  readonly settings?: LoadedWebSettings;
  /** Absent: the real one. */
  readonly bcrypt?: Bcrypt;
}

/** Starts the web server. The error says which address can't be had, and why. */
export async function startWebServer(options: WebServerOptions): Promise<Result<WebServer, string>> {
  const { host, port, deps, log, clock, metrics } = options;
  const countRefusal: ConnectionLimiterDeps["countRefusal"] = (reason) =>
    metrics.inc("proxywarden_web_refusals_total", { reason });
  const webSettings = watchWebSettings(options.settings ?? OPEN_WEB_SETTINGS, { clock, log, metrics });
  const operatorAuth = createOperatorAuth(clock);
  const userAuth = createUserAuth(options.bcrypt ?? createBcrypt(), clock);
  const authorizer = createRequestAuthorizer({
    clock,
    log,
    userAuth,
    operatorAuth,
    operators: () => deps.operators(),
    countRefusal,
  });
  const isTrustedProxy: IsTrustedProxy = (address) => deps.isTrustedProxy(address);
  const app = createHttpServer({ log, isTrustedProxy, countRefusal });
  const routes = webRoutes(deps, { log, clock, operatorAuth, countRefusal });
  addRoutes(app, routes, {
    webSettings,
    authorizer,
    requestQueue: createRequestQueue(clock),
    countRefusal,
  });
  const connectionLimiter = createConnectionLimiter(app.server, {
    webSettings,
    clock,
    log,
    isTrustedProxy,
    countRefusal,
  });
  app.addHook("preClose", (done) => {
    for (const route of routes) route.close?.();
    done();
  });
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    const reason = error instanceof Error ? error.message : String(error);
    return fail(`can't listen on ${hostAndPort(host, port)}: ${reason}; must be a free address of this host`);
  }
  const { address, port: boundPort } = app.server.address() as AddressInfo;
  return ok({
    get url() {
      return webUrl(webSettings.current().tls !== null, address, boundPort);
    },
    applySettings: webSettings.replace,
    async close(graceMs) {
      await closeServer(app, connectionLimiter, clock, graceMs);
      await userAuth.close();
    },
  });
}

/** What every request passes. */
interface RequestPipeline {
  readonly webSettings: LiveWebSettings;
  readonly authorizer: RequestAuthorizer;
  readonly requestQueue: RequestQueue;
  readonly countRefusal: ConnectionLimiterDeps["countRefusal"];
}

function addRoutes(app: FastifyInstance, routes: readonly Route[], pipeline: RequestPipeline): void {
  const byPath = new Map(routes.map((route) => [route.path, route]));
  app.addHook("onRequest", (request, reply, done) => {
    const webSettings = pipeline.webSettings.current();
    setHeaders(reply.raw, webSettings.headers);
    // One that came in before TLS was turned on would go on for as long as it is used, and its passwords in clear.
    if (webSettings.tls !== null && !isEncrypted(request)) reply.raw.setHeader("connection", "close");
    const admitted = pipeline.authorizer.authorize(
      request,
      reply,
      webSettings,
      byPath.get(request.routeOptions.url ?? ""),
    );
    if (admitted === true) done();
    else if (admitted !== false) void admitted.then((isIn) => isIn && done());
  });
  for (const route of routes) addRoute(app, route, pipeline);
}

const isEncrypted = ({ raw }: FastifyRequest): boolean => raw.socket instanceof TLSSocket;

/** Registers a route, and answers every other method on its path with 405. A route that isn't there is 404 by any. */
function addRoute(app: FastifyInstance, route: Route, pipeline: RequestPipeline): void {
  const { method, path, exists, authorize: admits } = route;
  const allowed: string[] = method === "GET" ? ["GET", "HEAD"] : [method];
  const isAvailable = (request: FastifyRequest, reply: FastifyReply): boolean => {
    if (exists === undefined || exists()) return true;
    sendError(request, reply, 404, NO_SUCH_PAGE);
    return false;
  };
  // Answered before the body is read: what it holds doesn't matter to those who are turned away.
  app.route({
    method,
    url: path,
    onRequest: (request, reply, done) => {
      if (isAvailable(request, reply) && (admits?.(request, reply) ?? true)) done();
    },
    handler: queued(route, pipeline),
  });
  app.route({
    method: app.supportedMethods.filter((other) => !allowed.includes(other)),
    url: path,
    onRequest: (request, reply, _done) => {
      if (!isAvailable(request, reply)) return;
      reply.header("allow", allowed.join(", "));
      sendError(request, reply, 405, `${request.method} is not allowed here; allowed: ${allowed.join(" and ")}`);
    },
    handler: () => undefined,
  });
}

/** The answers that are made of all that is known take turns; what is posted does not wait behind what is looked at. */
function queued({ method, path, handle }: Route, { requestQueue, countRefusal }: RequestPipeline): Route["handle"] {
  if (method !== "GET" || !path.startsWith("/api/")) return handle;
  return async (request, reply) => {
    const turn = requestQueue.enter();
    if (turn === null) {
      countRefusal("busy");
      reply.header("retry-after", 1);
      return sendError(request, reply, 503, "too many requests are queued; try again later");
    }
    await turn;
    return handle(request, reply);
  };
}

async function closeServer(
  app: FastifyInstance,
  connectionLimiter: ConnectionLimiter,
  clock: Pick<Clock, "sleep">,
  graceMs: DurationMs,
): Promise<void> {
  const closed = new AbortController();
  const closing = app.close().finally(() => closed.abort());
  connectionLimiter.closeUnaccepted();
  await clock.sleep(graceMs, closed.signal);
  app.server.closeAllConnections();
  connectionLimiter.closeAll();
  await closing;
}
