import type { AddressInfo } from "node:net";
import { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { WardenMetrics } from "../../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../../model/ports.ts";
import { authority, webUrl } from "./address.ts";
import { type Admission, createAdmission } from "./limits/request-admission.ts";
import { NO_SUCH_PAGE, sendError } from "./error-response.ts";
import { type Bcrypt, createBcrypt } from "./auth/bcrypt.ts";
import type { IsTrustedProxy } from "./client-address.ts";
import { createDoor, type Door, type DoorParts } from "./limits/connection-limiter.ts";
import { createGate } from "./auth/bearer-token.ts";
import { setHeaders } from "./security-headers.ts";
import { createHttpServer } from "./fastify-server.ts";
import { createPasswords } from "./auth/basic-auth.ts";
import type { Route } from "./route.ts";
import { type WebDeps, webRoutes } from "../api/routes.ts";
import { keepTerms, OPEN_TERMS, type PreparedTerms, type StandingTerms } from "./web-settings.ts";
import { createTurnstile, type Turnstile } from "./limits/request-queue.ts";

/** A listening web server. */
export interface Web {
  /** Where it listens now, as a person on this machine would open it. */
  readonly url: string;
  /** Puts other terms in force: for new connections, and for the next request of each. */
  adopt(terms: PreparedTerms): void;
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
  readonly metrics: Pick<WardenMetrics, "inc" | "set">;
  /** Absent: plain HTTP for everybody. */
  readonly terms?: PreparedTerms;
  /** Absent: the real one. */
  readonly bcrypt?: Bcrypt;
}

/** SIGTERM is to end in 10 s, and a POST in flight may want 7 of them. */
const CLOSE_MS_MAX: DurationMs = 2 * SECOND_MS;

/** Starts the web server. The error says which address can't be had, and why. */
export async function createWeb(options: WebOptions): Promise<Result<Web, string>> {
  const { host, port, deps, log, clock, metrics } = options;
  const refused: DoorParts["refused"] = (reason) => metrics.inc("proxywarden_web_refusals_total", { reason });
  const terms = keepTerms(options.terms ?? OPEN_TERMS, { clock, log, metrics });
  const gate = createGate(clock);
  const passwords = createPasswords(options.bcrypt ?? createBcrypt(), clock);
  const admission = createAdmission({ clock, log, passwords, gate, operators: () => deps.operators(), refused });
  const isTrustedProxy: IsTrustedProxy = (address) => deps.isTrustedProxy(address);
  const app = createHttpServer({ log, isTrustedProxy, refused });
  const routes = webRoutes(deps, { log, clock, gate, refused });
  addRoutes(app, routes, {
    terms,
    admission,
    turnstile: createTurnstile(clock),
    refused,
  });
  const door = createDoor(app.server, { terms, clock, log, isTrustedProxy, refused });
  app.addHook("preClose", (done) => {
    for (const route of routes) route.close?.();
    done();
  });
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    const reason = error instanceof Error ? error.message : String(error);
    return fail(`can't listen on ${authority(host, port)}: ${reason}; must be a free address of this host`);
  }
  const { address, port: boundPort } = app.server.address() as AddressInfo;
  return ok({
    get url() {
      return webUrl(terms.current().tls !== null, address, boundPort);
    },
    adopt: terms.adopt,
    async close() {
      await closeServer(app, door, clock);
      await passwords.close();
    },
  });
}

/** What every request passes. */
interface Passage {
  readonly terms: StandingTerms;
  readonly admission: Admission;
  readonly turnstile: Turnstile;
  readonly refused: DoorParts["refused"];
}

function addRoutes(app: FastifyInstance, routes: readonly Route[], passage: Passage): void {
  const byPath = new Map(routes.map((route) => [route.path, route]));
  app.addHook("onRequest", (request, reply, done) => {
    const terms = passage.terms.current();
    setHeaders(reply.raw, terms.headers);
    // One that came in before TLS was turned on would go on for as long as it is used, and its passwords in clear.
    if (terms.tls !== null && !isEncrypted(request)) reply.raw.setHeader("connection", "close");
    const admitted = passage.admission.admit(request, reply, terms, byPath.get(request.routeOptions.url ?? ""));
    if (admitted === true) done();
    else if (admitted !== false) void admitted.then((isIn) => isIn && done());
  });
  for (const route of routes) addRoute(app, route, passage);
}

const isEncrypted = ({ raw }: FastifyRequest): boolean => raw.socket instanceof TLSSocket;

/** Registers a route, and answers every other method on its path with 405. A route that isn't there is 404 by any. */
function addRoute(app: FastifyInstance, route: Route, passage: Passage): void {
  const { method, path, exists, admits } = route;
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
    onRequest: (request, reply, done) => {
      if (isThere(request, reply) && (admits?.(request, reply) ?? true)) done();
    },
    handler: inTurn(route, passage),
  });
  app.route({
    method: app.supportedMethods.filter((other) => !allowed.includes(other)),
    url: path,
    onRequest: (request, reply, _done) => {
      if (!isThere(request, reply)) return;
      reply.header("allow", allowed.join(", "));
      sendError(request, reply, 405, `${request.method} is not allowed here; allowed: ${allowed.join(" and ")}`);
    },
    handler: () => undefined,
  });
}

/** The answers that are made of all that is known take turns; what is posted does not wait behind what is looked at. */
function inTurn({ method, path, handle }: Route, { turnstile, refused }: Passage): Route["handle"] {
  if (method !== "GET" || !path.startsWith("/api/")) return handle;
  return async (request, reply) => {
    const turn = turnstile.enter();
    if (turn === null) {
      refused("busy");
      reply.header("retry-after", 1);
      return sendError(request, reply, 503, "too many requests are queued; try again later");
    }
    await turn;
    return handle(request, reply);
  };
}

async function closeServer(app: FastifyInstance, door: Door, clock: Pick<Clock, "sleep">): Promise<void> {
  const closed = new AbortController();
  const closing = app.close().finally(() => closed.abort());
  door.clear();
  await clock.sleep(CLOSE_MS_MAX, closed.signal);
  app.server.closeAllConnections();
  door.cut();
  await closing;
}
