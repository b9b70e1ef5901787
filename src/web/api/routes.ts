import type { FastifyReply, FastifyRequest } from "fastify";
import type { RemediationView } from "../../remediation/status/views.ts";
import { createOperatorGuard } from "../http/auth/operator-guard.ts";
import type { IsTrustedProxy } from "../http/client-address.ts";
import { sendError, sendText } from "../http/error-response.ts";
import { limitStall } from "../http/fastify-server.ts";
import type { Route, RouteDeps } from "../http/route.ts";
import { type Scrape, type ScrapeRequest, sendScrape } from "../scrape/scrape-endpoint.ts";
import { pageRoutes } from "../ui/page-routes.ts";
import { type LiveRouteDeps, liveRoutes } from "./live-routes.ts";
import { type OperatorCommandDeps, onBehalfOf, operatorCommandRoutes } from "./operator-routes.ts";
import {
  type NodesQuery,
  readActionsQuery,
  readDecisionsQuery,
  readNodesQuery,
  readOrdersQuery,
  readPoliciesQuery,
} from "./query.ts";
import type { Reload } from "./reload.ts";
import {
  actionsView,
  decisionsView,
  explanationView,
  hasHistory,
  ordersView,
  policiesView,
  remediationStatusView,
} from "./remediation-views.ts";

/** What the routes show and do. All but `scrape` and `reload` answer at once. */
export interface WebDeps extends OperatorCommandDeps, LiveRouteDeps {
  scrape(request: ScrapeRequest): Promise<Scrape>;
  /** The reasons say what is missing; none where it is ready. A journal that can't be written is told by `warden`. */
  ready(): { readonly ready: boolean; readonly reasons: readonly string[] };
  readonly reload: Reload;
  /** Called for each connection and request: a reload may change the list. */
  readonly isTrustedProxy: IsTrustedProxy;
  status(): object;
  nodes(query: NodesQuery): object;
  /** Null: no such node. */
  node(id: string): object | null;
  budget(): object;
  /** Asked at each request: a reload may bring another. */
  remediation(): RemediationView;
}

/** Every route of the web interface, a row each. */
export function webRoutes(deps: WebDeps, parts: RouteDeps): readonly Route[] {
  const guard = createOperatorGuard(() => deps.operators(), parts);
  return [
    { method: "GET", path: "/metrics", handle: (request, reply) => sendMetrics(deps, request, reply) },
    {
      method: "GET",
      path: "/-/healthy",
      access: "all",
      handle: (_, reply) => sendText(reply, 200, "healthy"),
    },
    { method: "GET", path: "/-/ready", access: "all", handle: (_request, reply) => sendReady(deps, reply) },
    {
      method: "POST",
      path: "/-/reload",
      access: "admin",
      authorize: guard.allows,
      handle: (request, reply) => answerReload(deps, guard.operatorOf(request), reply),
    },
    { method: "GET", path: "/api/v1/status", handle: () => fullStatus(deps) },
    { method: "GET", path: "/api/v1/nodes", handle: (request, reply) => answerNodes(deps, request, reply) },
    { method: "GET", path: "/api/v1/nodes/:id", handle: (request, reply) => answerNode(deps, request, reply) },
    { method: "GET", path: "/api/v1/decisions", handle: (request, reply) => answerDecisions(deps, request, reply) },
    { method: "GET", path: "/api/v1/actions", handle: (request, reply) => answerActions(deps, request, reply) },
    { method: "GET", path: "/api/v1/policies", handle: (request, reply) => answerPolicies(deps, request, reply) },
    { method: "GET", path: "/api/v1/budget", handle: () => deps.budget() },
    { method: "GET", path: "/api/v1/orders", handle: (request, reply) => answerOrders(deps, request, reply) },
    ...pageRoutes(),
    ...liveRoutes(deps, parts),
    ...operatorCommandRoutes(deps, parts, guard),
  ];
}

async function sendMetrics(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const scrape = await deps.scrape({
    accept: request.headers.accept,
    acceptEncoding: request.headers["accept-encoding"]?.toString(),
  });
  // Finished buffers go out by reference; Fastify would want them as one, or as a stream.
  reply.hijack();
  limitStall(reply.raw);
  sendScrape(reply.raw, scrape);
}

function sendReady(deps: WebDeps, reply: FastifyReply): FastifyReply {
  const { journal } = deps.remediation().status();
  const unwritable = journal === null ? [] : [`the journal can't be written: ${journal}`];
  const { ready, reasons } = deps.ready();
  return ready && journal === null
    ? sendText(reply, 200, "ready")
    : sendText(reply, 503, ["not ready", ...reasons, ...unwritable].join("\n"));
}

async function answerReload(deps: WebDeps, operator: string | null, reply: FastifyReply): Promise<FastifyReply> {
  const result = await deps.reload();
  onBehalfOf(deps.commands(), operator).noteReload(result.ok ? [] : result.error);
  return result.ok ? sendText(reply, 200, "reloaded") : sendText(reply, 400, result.error.join("\n"));
}

function fullStatus(deps: WebDeps): object {
  const remediation = deps.remediation();
  return {
    ...deps.status(),
    takes_orders: deps.operators().length > 0,
    warden: remediationStatusView(remediation.status(), remediation.approvals().length),
  };
}

function answerNodes(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readNodesQuery(queryOf(request));
  return query.ok ? deps.nodes(query.value) : sendError(request, reply, 400, query.error);
}

/** A node that is gone is still explained, for as long as the journal remembers anything of it. */
function answerNode(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const { id } = request.params as { id: string };
  const node = deps.node(id);
  const explanation = explanationView(deps.remediation(), id);
  if (node === null && !hasHistory(explanation)) {
    return sendError(request, reply, 404, `no node ${JSON.stringify(id)} in the fleet`);
  }
  return { ...(node ?? { id }), ...explanation };
}

function answerDecisions(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readDecisionsQuery(queryOf(request));
  return query.ok ? decisionsView(deps.remediation(), query.value) : sendError(request, reply, 400, query.error);
}

function answerActions(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readActionsQuery(queryOf(request));
  return query.ok ? actionsView(deps.remediation(), query.value) : sendError(request, reply, 400, query.error);
}

function answerOrders(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readOrdersQuery(queryOf(request));
  return query.ok ? ordersView(deps.remediation(), query.value) : sendError(request, reply, 400, query.error);
}

function answerPolicies(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const name = readPoliciesQuery(queryOf(request));
  return name.ok ? policiesView(deps.remediation(), name.value) : sendError(request, reply, 400, name.error);
}

const queryOf = (request: FastifyRequest) => request.query as Readonly<Record<string, unknown>>;
