import type { FastifyReply, FastifyRequest } from "fastify";
import { type Scrape, type ScrapeRequest, sendExposition } from "./exposition.ts";
import { type NodesQuery, readNodesQuery } from "./query.ts";
import type { Reload } from "./reload.ts";
import { renderStartPage, START_PAGE_POLICY, type StartPage } from "./start.ts";

/** What the routes show and do. All but `scrape` and `reload` answer at once, from memory. */
export interface WebDeps {
  scrape(request: ScrapeRequest): Promise<Scrape>;
  /** The reasons say what is missing; none where it is ready. */
  ready(): { readonly ready: boolean; readonly reasons: readonly string[] };
  readonly reload: Reload;
  about(): StartPage;
  status(): object;
  nodes(query: NodesQuery): object;
  /** Null: no such node. */
  node(id: string): object | null;
  budget(): object;
}

/** One route. GET also answers HEAD. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  handle(request: FastifyRequest, reply: FastifyReply): unknown;
}

/** Every route of the web interface, a row each. */
export function webRoutes(deps: WebDeps): readonly Route[] {
  return [
    { method: "GET", path: "/metrics", handle: (request, reply) => sendMetrics(deps, request, reply) },
    { method: "GET", path: "/-/healthy", handle: (_request, reply) => sendText(reply, 200, "healthy") },
    { method: "GET", path: "/-/ready", handle: (_request, reply) => sendReady(deps, reply) },
    { method: "POST", path: "/-/reload", handle: (request, reply) => answerReload(deps.reload, request, reply) },
    { method: "GET", path: "/api/v1/status", handle: () => deps.status() },
    { method: "GET", path: "/api/v1/nodes", handle: (request, reply) => answerNodes(deps, request, reply) },
    { method: "GET", path: "/api/v1/nodes/:id", handle: (request, reply) => answerNode(deps, request, reply) },
    { method: "GET", path: "/api/v1/budget", handle: () => deps.budget() },
    { method: "GET", path: "/", handle: (_request, reply) => sendStartPage(deps, reply) },
  ];
}

/** Answers with an error: as JSON below /api, as a line of text elsewhere. */
export function sendError(request: FastifyRequest, reply: FastifyReply, status: number, message: string): FastifyReply {
  if (!request.url.startsWith("/api/")) return sendText(reply, status, message);
  return reply.code(status).send({ error: errorCodes[status] ?? "error", message });
}

const errorCodes: Readonly<Record<number, string>> = {
  400: "bad_request",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  413: "body_too_large",
  500: "internal",
  503: "unavailable",
};

const sendText = (reply: FastifyReply, status: number, line: string) =>
  reply.code(status).type("text/plain; charset=utf-8").send(`${line}\n`);

async function sendMetrics(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const scrape = await deps.scrape({
    accept: request.headers.accept,
    acceptEncoding: request.headers["accept-encoding"]?.toString(),
  });
  // Finished buffers go out by reference; Fastify would want them as one, or as a stream.
  reply.hijack();
  sendExposition(reply.raw, scrape);
}

function sendReady(deps: WebDeps, reply: FastifyReply): FastifyReply {
  const { ready, reasons } = deps.ready();
  return ready ? sendText(reply, 200, "ready") : sendText(reply, 503, ["not ready", ...reasons].join("\n"));
}

async function answerReload(reload: Reload, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  // A page of another site may make a browser post here, but can't hide that it did.
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    return sendError(request, reply, 403, "a page of another site may not reload the configuration");
  }
  const result = await reload();
  return result.ok ? sendText(reply, 200, "reloaded") : sendText(reply, 400, result.error.join("\n"));
}

function answerNodes(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readNodesQuery(request.query as Record<string, unknown>);
  return query.ok ? deps.nodes(query.value) : sendError(request, reply, 400, query.error);
}

function answerNode(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const { id } = request.params as { id: string };
  return deps.node(id) ?? sendError(request, reply, 404, `no node ${JSON.stringify(id)} in the fleet`);
}

const sendStartPage = (deps: WebDeps, reply: FastifyReply) =>
  reply
    .type("text/html; charset=utf-8")
    .header("content-security-policy", START_PAGE_POLICY)
    .send(renderStartPage(deps.about()));
