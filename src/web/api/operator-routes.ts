import type { FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "../../model/ports.ts";
import type { Operator } from "../../model/remediation/operator-command.ts";
import type { CommandRejection, OperatorCommands } from "../../remediation/status/views.ts";
import type { OperatorGuard } from "../http/auth/operator-guard.ts";
import { sendError } from "../http/error-response.ts";
import type { Route, RouteDeps } from "../http/route.ts";
import { type OperatorCommandRoute, operatorCommandTable, readReason } from "./operator-commands.ts";

/** What orders are given to, and who may give them. Both are asked at each request: a reload may bring others. */
export interface OperatorCommandDeps {
  commands(): OperatorCommands;
  /** None: there are no routes for orders. */
  operators(): readonly Operator[];
}

/** Returns the routes of orders. They exist while there are operators, and need the token of one. */
export function operatorCommandRoutes(
  deps: OperatorCommandDeps,
  parts: RouteDeps,
  guard: OperatorGuard,
): readonly Route[] {
  return operatorCommandTable.map((row) => ({
    method: "POST",
    path: row.path,
    access: "admin",
    exists: () => deps.operators().length > 0,
    authorize: guard.allows,
    handle: (request, reply) =>
      handleCommand({ deps, route: row, log: parts.log, operator: guard.operatorOf(request) }, request, reply),
  }));
}

const STATUS_BY_REFUSAL: Readonly<Record<CommandRejection["kind"], number>> = {
  not_found: 404,
  conflict: 409,
  journal: 503,
};

/** Returns the orders in the name of an operator; null: no operators are configured. */
export const onBehalfOf = (orders: OperatorCommands, operator: string | null): OperatorCommands =>
  operator === null ? orders : orders.as(operator);

/** An order that came in. */
interface ReceivedCommand {
  readonly deps: OperatorCommandDeps;
  readonly route: OperatorCommandRoute;
  readonly log: Log;
  readonly operator: string | null;
}

function handleCommand(
  { deps, route: row, log, operator }: ReceivedCommand,
  request: FastifyRequest,
  reply: FastifyReply,
): object {
  const reason = readReason(request.body as Uint8Array | undefined, row);
  if (!reason.ok) return sendError(request, reply, 400, reason.error);
  const { id = "" } = request.params as { id?: string };
  const done = row.execute(onBehalfOf(deps.commands(), operator), id, reason.value);
  const order = { order: row.name, operator, ...(row.about === null ? {} : { [row.about]: id }), from: request.ip };
  if (done.ok) {
    log.info({ ...order, ...(row.hasReason ? { reason: reason.value } : {}) }, "operator command executed");
    return { message: done.value };
  }
  log.warn({ ...order, refusal: done.error.message }, "operator command rejected");
  return sendError(request, reply, STATUS_BY_REFUSAL[done.error.kind], done.error.message);
}
