import type { FastifyReply, FastifyRequest } from "fastify";
import type { OrderRefusal, Orders } from "../engine/explanation.ts";
import type { Secret } from "../model/ports.ts";
import { sendError } from "./answer.ts";
import type { OperatorGuard } from "./operator-guard.ts";
import { type OrderRow, orderRows, readReason } from "./orders.ts";
import type { Route, RouteParts } from "./route.ts";

/** What orders are given to, and who may give them. Both are asked at each request: a reload may bring others. */
export interface OrderDeps {
  orders(): Orders;
  /** Null: none is configured, and there are no routes for orders. */
  adminToken(): Secret | null;
}

/** Returns the routes of orders. They exist while an admin token is configured, and need it. */
export function orderRoutes(deps: OrderDeps, parts: RouteParts, guard: OperatorGuard): readonly Route[] {
  return orderRows.map((row) => ({
    method: "POST",
    path: row.path,
    admission: "admin",
    exists: () => deps.adminToken() !== null,
    admits: guard,
    handle: (request, reply) => answerOrder(deps, row, parts, request, reply),
  }));
}

const statuses: Readonly<Record<OrderRefusal["kind"], number>> = { not_found: 404, conflict: 409, journal: 503 };

function answerOrder(
  deps: OrderDeps,
  row: OrderRow,
  { log }: RouteParts,
  request: FastifyRequest,
  reply: FastifyReply,
): object {
  const reason = readReason(request.body as Uint8Array | undefined, row);
  if (!reason.ok) return sendError(request, reply, 400, reason.error);
  const { id = "" } = request.params as { id?: string };
  const done = row.carryOut(deps.orders(), id, reason.value);
  const order = { order: row.name, ...(row.about === null ? {} : { [row.about]: id }), from: request.ip };
  if (done.ok) {
    log.info({ ...order, ...(row.hasReason ? { reason: reason.value } : {}) }, "Order carried out.");
    return { message: done.value };
  }
  log.warn({ ...order, refusal: done.error.message }, "Order refused.");
  return sendError(request, reply, statuses[done.error.kind], done.error.message);
}
