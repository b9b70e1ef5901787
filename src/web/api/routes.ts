import type { FastifyReply, FastifyRequest } from "fastify";
import type { WardenView } from "../../remediation/status/views.ts";
import { sendError, sendText } from "../http/error-response.ts";
import type { IsTrustedProxy } from "../http/client-address.ts";
import { type Scrape, type ScrapeRequest, sendExposition } from "../scrape/scrape-endpoint.ts";
import { limitStall } from "../http/fastify-server.ts";
import { type LiveDeps, liveRoutes } from "./live-routes.ts";
import { createOperatorGuard } from "../http/auth/operator-guard.ts";
import { givenBy, type OrderDeps, orderRoutes } from "./operator-routes.ts";
import { pageRoutes } from "../ui/page-routes.ts";
import {
  type NodesQuery,
  readActionsQuery,
  readDecisionsQuery,
  readNodesQuery,
  readOrdersQuery,
  readPoliciesQuery,
} from "./query.ts";
import type { Reload } from "./reload.ts";
import type { Route, RouteParts } from "../http/route.ts";
import {
  actionsView,
  decisionsView,
  explanationView,
  isRemembered,
  ordersView,
  policiesView,
  wardenStatusView,
} from "./remediation-views.ts";

/** What the routes show and do. All but `scrape` and `reload` answer at once. */
export interface WebDeps extends OrderDeps, LiveDeps {
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
  warden(): WardenView;
}

/** Every route of the web interface, a row each. */
export function webRoutes(deps: WebDeps, parts: RouteParts): readonly Route[] {
  const guard = createOperatorGuard(() => deps.operators(), parts);
  return [
    { method: "GET", path: "/metrics", handle: (request, reply) => sendMetrics(deps, request, reply) },
    {
      method: "GET",
      path: "/-/healthy",
      admission: "all",
      handle: (_, reply) => sendText(reply, 200, "healthy"),
    },
    { method: "GET", path: "/-/ready", admission: "all", handle: (_request, reply) => sendReady(deps, reply) },
    {
      method: "POST",
      path: "/-/reload",
      admission: "admin",
      admits: guard.admits,
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
    ...orderRoutes(deps, parts, guard),
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
  sendExposition(reply.raw, scrape);
}

function sendReady(deps: WebDeps, reply: FastifyReply): FastifyReply {
  const { journal } = deps.warden().status();
  const unwritable = journal === null ? [] : [`the journal can't be written: ${journal}`];
  const { ready, reasons } = deps.ready();
  return ready && journal === null
    ? sendText(reply, 200, "ready")
    : sendText(reply, 503, ["not ready", ...reasons, ...unwritable].join("\n"));
}

async function answerReload(deps: WebDeps, operator: string | null, reply: FastifyReply): Promise<FastifyReply> {
  const result = await deps.reload();
  givenBy(deps.orders(), operator).noteReload(result.ok ? [] : result.error);
  return result.ok ? sendText(reply, 200, "reloaded") : sendText(reply, 400, result.error.join("\n"));
}

function fullStatus(deps: WebDeps): object {
  const warden = deps.warden();
  return {
    ...deps.status(),
    takes_orders: deps.operators().length > 0,
    warden: wardenStatusView(warden.status(), warden.approvals().length),
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
  const explanation = explanationView(deps.warden(), id);
  if (node === null && !isRemembered(explanation)) {
    return sendError(request, reply, 404, `no node ${JSON.stringify(id)} in the fleet`);
  }
  return { ...(node ?? { id }), ...explanation };
}

function answerDecisions(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readDecisionsQuery(queryOf(request));
  return query.ok ? decisionsView(deps.warden(), query.value) : sendError(request, reply, 400, query.error);
}

function answerActions(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readActionsQuery(queryOf(request));
  return query.ok ? actionsView(deps.warden(), query.value) : sendError(request, reply, 400, query.error);
}

function answerOrders(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const query = readOrdersQuery(queryOf(request));
  return query.ok ? ordersView(deps.warden(), query.value) : sendError(request, reply, 400, query.error);
}

function answerPolicies(deps: WebDeps, request: FastifyRequest, reply: FastifyReply): object {
  const name = readPoliciesQuery(queryOf(request));
  return name.ok ? policiesView(deps.warden(), name.value) : sendError(request, reply, 400, name.error);
}

const queryOf = (request: FastifyRequest) => request.query as Readonly<Record<string, unknown>>;
