import type { FastifyReply, FastifyRequest } from "fastify";
import { SECOND_MS } from "../base/duration.ts";
import type { OrderRefusal, Orders } from "../engine/explanation.ts";
import type { Secret } from "../model/ports.ts";
import { sendError } from "./answer.ts";
import { type OrderRow, orderRows, readReason } from "./orders.ts";
import type { Route, RouteParts } from "./route.ts";

/** What orders are given to, and who may give them. Both are asked at each request: a reload may bring others. */
export interface OrderDeps {
  orders(): Orders;
  /** Null: none is configured, and there are no routes for orders. */
  adminToken(): Secret | null;
}

/**
 * The routes by which a person gives orders: for whoever has the admin token. A page of another site can't send it, so
 * no more is asked of where a request comes from.
 */
export function orderRoutes(deps: OrderDeps, parts: RouteParts): readonly Route[] {
  return orderRows.map((row) => ({
    method: "POST",
    path: row.path,
    admission: "admin",
    exists: () => deps.adminToken() !== null,
    admits: (request, reply) => admits(deps, parts, request, reply),
    handle: (request, reply) => answerOrder(deps, row, parts, request, reply),
  }));
}

const statuses: Readonly<Record<OrderRefusal["kind"], number>> = { not_found: 404, conflict: 409, journal: 503 };

function admits(
  deps: OrderDeps,
  { log, gate, refused }: RouteParts,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const token = deps.adminToken();
  const admission = token === null ? null : gate.judge(request.headers.authorization, token);
  switch (admission?.kind) {
    case "granted":
      return true;
    case "throttled":
      refused("attempts");
      reply.header("retry-after", Math.ceil(admission.retryAfterMs / SECOND_MS));
      sendError(request, reply, 429, "too many wrong admin tokens; the right one is still taken");
      return false;
    case "wrong":
      refused("credentials");
      log.warn({ path: request.routeOptions.url, from: request.ip }, "Wrong admin token given.");
      reply.header("www-authenticate", 'Bearer realm="proxywarden", error="invalid_token"');
      sendError(request, reply, 401, "that is not the admin token");
      return false;
    default:
      refused("credentials");
      reply.header("www-authenticate", 'Bearer realm="proxywarden"');
      sendError(request, reply, 401, "orders need the admin token, as in Authorization: Bearer TOKEN");
      return false;
  }
}

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
