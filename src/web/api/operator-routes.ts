import type { FastifyReply, FastifyRequest } from "fastify";
import type { OrderRefusal, Orders } from "../../remediation/status/views.ts";
import type { Operator } from "../../model/remediation/operator.ts";
import type { Log } from "../../model/ports.ts";
import { sendError } from "../http/error-response.ts";
import type { OperatorGuard } from "../http/auth/operator-guard.ts";
import { type OrderRow, orderRows, readReason } from "./operator-commands.ts";
import type { Route, RouteParts } from "../http/route.ts";

/** What orders are given to, and who may give them. Both are asked at each request: a reload may bring others. */
export interface OrderDeps {
  orders(): Orders;
  /** None: there are no routes for orders. */
  operators(): readonly Operator[];
}

/** Returns the routes of orders. They exist while there are operators, and need the token of one. */
export function orderRoutes(deps: OrderDeps, parts: RouteParts, guard: OperatorGuard): readonly Route[] {
  return orderRows.map((row) => ({
    method: "POST",
    path: row.path,
    admission: "admin",
    exists: () => deps.operators().length > 0,
    admits: guard.admits,
    handle: (request, reply) =>
      answerOrder({ deps, row, log: parts.log, operator: guard.operatorOf(request) }, request, reply),
  }));
}

const statuses: Readonly<Record<OrderRefusal["kind"], number>> = { not_found: 404, conflict: 409, journal: 503 };

/** Returns the orders in the name of an operator; null: no operators are configured. */
export const givenBy = (orders: Orders, operator: string | null): Orders =>
  operator === null ? orders : orders.of(operator);

/** An order that came in. */
interface Given {
  readonly deps: OrderDeps;
  readonly row: OrderRow;
  readonly log: Log;
  readonly operator: string | null;
}

function answerOrder({ deps, row, log, operator }: Given, request: FastifyRequest, reply: FastifyReply): object {
  const reason = readReason(request.body as Uint8Array | undefined, row);
  if (!reason.ok) return sendError(request, reply, 400, reason.error);
  const { id = "" } = request.params as { id?: string };
  const done = row.carryOut(givenBy(deps.orders(), operator), id, reason.value);
  const order = { order: row.name, operator, ...(row.about === null ? {} : { [row.about]: id }), from: request.ip };
  if (done.ok) {
    log.info({ ...order, ...(row.hasReason ? { reason: reason.value } : {}) }, "operator command executed");
    return { message: done.value };
  }
  log.warn({ ...order, refusal: done.error.message }, "operator command rejected");
  return sendError(request, reply, statuses[done.error.kind], done.error.message);
}
