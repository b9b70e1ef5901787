import type { FastifyReply, FastifyRequest } from "fastify";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { errorMessage } from "../../base/result.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { nextTurn, runInSlices } from "../../platform/event-loop.ts";
import { FailureState } from "../../platform/log.ts";
import type { RemediationView } from "../../remediation/status/views.ts";
import { createOperatorGuard } from "../http/auth/operator-guard.ts";
import { limitStall } from "../http/fastify-server.ts";
import { sendError, sendText } from "../http/response.ts";
import type { Route, WebContext } from "../http/route.ts";
import { sendScrape } from "../scrape/metrics-endpoint.ts";
import { pageRoutes } from "../ui/page-routes.ts";
import { liveRoutes } from "./live-routes.ts";
import { operatorCommandRoutes } from "./operator-command-routes.ts";
import { type Query, rowsQuery } from "./query.ts";
import {
  approvalsOf,
  explanationView,
  hasHistory,
  heldNodesView,
  policiesView,
  remediationStatusView,
} from "./remediation-views.ts";
import { actionView, decisionView, operatorCommandView, withNodes } from "./row-views.ts";
import { type Rows, withWarnings } from "./unknown-names.ts";

/** Returns every route of the web server. */
export function webRoutes(context: WebContext): readonly Route[] {
  const guard = createOperatorGuard(context);
  return [
    { method: "GET", path: "/metrics", handle: (request, reply) => sendMetrics(context, request, reply) },
    { method: "GET", path: "/-/healthy", access: "all", handle: (_, reply) => sendText(reply, 200, "healthy") },
    { method: "GET", path: "/-/ready", access: "all", handle: (_, reply) => sendReady(context.remediation(), reply) },
    {
      method: "POST",
      path: "/-/reload",
      access: "admin",
      authorize: guard.allows,
      async handle(request, reply) {
        const reloaded = await context.reload(guard.operatorOf(request));
        return reloaded.ok ? sendText(reply, 200, "reloaded") : sendText(reply, 400, reloaded.error.join("\n"));
      },
    },
    ...jsonRoutes(context),
    ...pageRoutes(),
    ...liveRoutes(context),
    ...operatorCommandRoutes(context, guard),
  ];
}

/** A database may answer late. The next request in the queue waits no longer than this for it. */
const JOURNAL_MS_MAX: DurationMs = SECOND_MS / 4;

function jsonRoutes(context: WebContext): readonly Route[] {
  const { clock, requestQueue, remediation } = context;
  const readNode = journalReader(context, "/api/v1/nodes/:id");
  const list = (
    path: string,
    parameters: Route["parameters"] & {},
    rows: (query: Query, readJournal: JournalReader) => Promise<readonly object[]>,
    waitMsMax = JOURNAL_MS_MAX,
  ): Route => {
    const readJournal = journalReader(context, `/api/v1/${path}`);
    async function answer(query: Query): Promise<Rows<object>> {
      const data = await rows(query, readJournal);
      // Reading a thousand rows, formatting them and writing them as JSON each take milliseconds.
      await nextTurn();
      return withWarnings(data, query, context.fleet(), remediation().policyNames());
    }
    const handle: Route["handle"] = ({ query }) => requestQueue.occupy(answer(query as Query), waitMsMax);
    return { method: "GET", path: `/api/v1/${path}`, parameters, handle };
  };
  return [
    { method: "GET", path: "/api/v1/status", handle: () => requestQueue.occupy(fullStatus(context)) },
    { method: "GET", path: "/api/v1/budget", handle: () => context.budget() },
    {
      method: "GET",
      path: "/api/v1/nodes",
      parameters: ["page", "limit", "node", "status", "country", "region", "q"],
      handle: ({ query }) => requestQueue.occupy(runInSlices(context.nodes(query as Query), clock)),
    },
    {
      method: "GET",
      path: "/api/v1/nodes/:id",
      parameters: ["until"],
      handle: (request, reply) => requestQueue.occupy(answerNode(context, request, reply, readNode), JOURNAL_MS_MAX),
    },
    list("decisions", ["node", "policy", "until", "limit"], async (query, readJournal) => {
      const decisions = await readJournal(remediation().decisions(rowsQuery(query)));
      await nextTurn();
      return withNodes(decisions.map(decisionView), context.fleet());
    }),
    list("actions", ["node", "policy", "until", "limit", "state"], async (query, readJournal) => {
      const { state } = query;
      const actions =
        state === undefined
          ? await readJournal(remediation().actions(rowsQuery(query)))
          : approvalsOf(remediation(), state, rowsQuery(query));
      return withNodes(actions.map(actionView), context.fleet());
    }),
    list("orders", ["node", "until", "limit"], async (query, readJournal) => {
      const commands = await readJournal(remediation().operatorCommands(rowsQuery(query)));
      return withNodes(commands.map(operatorCommandView), context.fleet());
    }),
    list(
      "holds",
      ["node", "policy", "limit"],
      (query) => runInSlices(heldNodesView(remediation(), rowsQuery(query)), clock),
      Number.POSITIVE_INFINITY,
    ),
    list(
      "policies",
      ["policy"],
      ({ policy = null }) => runInSlices(policiesView(remediation(), policy), clock),
      Number.POSITIVE_INFINITY,
    ),
  ];
}

type JournalReader = ReturnType<typeof journalReader>;

/**
 * Creates a function for a route, which waits for rows of the journal. If they can't be read, it rejects with an error that
 * is answered 503; the first failure in a row is logged, unless the daemon already reports a problem of the journal. An
 * error that only a defect can cause is passed on.
 */
function journalReader({ log, remediation }: WebContext, path: string) {
  const reads = new FailureState();
  return async <Rows>(reading: Promise<Rows>): Promise<Rows> => {
    try {
      const rows = await reading;
      reads.succeeded(log, { path }, "web requests can read the journal again");
      return rows;
    } catch (error) {
      if ([TypeError, RangeError, ReferenceError].some((kind) => error instanceof kind)) throw error;
      if (remediation().status().journal === null)
        reads.failed(log, { path, err: error }, "web requests can't read the journal");
      throw Object.assign(new Error(`the journal can't be read: ${errorMessage(error)}`), { statusCode: 503 });
    }
  };
}

async function sendMetrics(context: WebContext, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const scrape = await context.scrape(request.headers);
  // Fastify would copy the chunks into one buffer.
  reply.hijack();
  limitStall(reply.raw);
  await sendScrape(reply.raw, scrape).catch((error: unknown) =>
    context.log.error({ method: request.method, path: request.routeOptions.url, err: error }, "web request failed"),
  );
}

/** `remediation` exists only once the configuration is active, so only the journal can be unavailable. */
function sendReady(remediation: RemediationView, reply: FastifyReply): FastifyReply {
  const { journal } = remediation.status();
  return journal === null ? sendText(reply, 200, "ready") : sendText(reply, 503, `not ready\n${journal}`);
}

async function fullStatus(context: WebContext): Promise<object> {
  const heldNodes = await runInSlices(context.remediation().heldNodeCount(), context.clock);
  const status = await context.status();
  const remediation = context.remediation();
  return {
    ...status,
    accepts_commands: context.operators().length > 0,
    remediation: remediationStatusView(remediation.status(), remediation.approvals().length, heldNodes),
  };
}

/** A node that has left the fleet is still explained while the journal has rows about it. */
async function answerNode(
  context: WebContext,
  request: FastifyRequest,
  reply: FastifyReply,
  readJournal: JournalReader,
): Promise<object> {
  const { id } = request.params as { id: string };
  const node = context.node(id);
  const explained = await runInSlices(context.remediation().explain(id), context.clock);
  const { until } = rowsQuery(request.query as Query);
  const history = await readJournal(context.remediation().historyOf(id, until));
  // Reading the journal has taken a part of this turn.
  await nextTurn();
  const remediation = context.remediation();
  const approvals = [...remediation.approvals(), ...remediation.approvals("approved")];
  const explanation = explanationView(explained, approvals, history);
  if (node === null && !hasHistory(explanation)) {
    return sendError(request, reply, 404, unknownNodeProblem(id, context.fleet()));
  }
  return { ...(node ?? { id }), ...explanation };
}

/** A standby reads no list, so it can't say whether a node exists. */
const unknownNodeProblem = (id: string, fleet: Fleet | null): string =>
  fleet === null || fleet.settledAt === null
    ? `the journal has no rows about the node ${JSON.stringify(id)}, and this daemon has not read the whole node list`
    : `no node with the id ${JSON.stringify(id)} in the fleet`;
