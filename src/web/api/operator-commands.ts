import { fail, ok, type Result } from "../../base/result.ts";
import type {
  CommandRejection,
  CommandReply,
  Operator,
  OperatorCommandName,
} from "../../model/remediation/operator-command.ts";
import type { OperatorCommands } from "../../remediation/status/views.ts";
import type { OperatorGuard } from "../http/auth/operator-guard.ts";
import { sendError } from "../http/response.ts";
import type { Route, RouteDeps } from "../http/route.ts";

/** A command of an operator: a route, and a CLI command of the same name. */
export interface OperatorCommandRoute {
  readonly name: Exclude<OperatorCommandName, "reload">;
  /** `:id` stands for the id of what `about` names. */
  readonly path: string;
  /** Absent: the daemon as a whole. */
  readonly about?: "action" | "node";
  /** Whether it takes a reason, which is optional. Absent: no. */
  readonly hasReason?: true;
  /** Help of the CLI command, and the arguments of its example. */
  readonly description: string;
  readonly example?: string;
  execute(commands: OperatorCommands, id: string, reason: string): Promise<CommandReply>;
}

/** Every command of operators. */
export const operatorCommandTable: readonly OperatorCommandRoute[] = [
  {
    name: "pause",
    path: "/api/v1/pause",
    hasReason: true,
    description: "pause all actions until resume; polling continues",
    example: '--reason "deploy until 14:00"',
    execute: (commands, _, reason) => commands.pause(reason),
  },
  {
    name: "resume",
    path: "/api/v1/resume",
    description: "end a pause",
    execute: (commands) => commands.resume(),
  },
  {
    name: "approve",
    path: "/api/v1/actions/:id/approve",
    about: "action",
    description: "approve a waiting action; see approvals",
    example: "act-12",
    execute: (commands, id) => commands.approve(id),
  },
  {
    name: "reject",
    path: "/api/v1/actions/:id/reject",
    about: "action",
    hasReason: true,
    description: "reject a waiting action; see approvals",
    example: 'act-12 --reason "the carrier is on it"',
    execute: (commands, id, reason) => commands.reject(id, reason),
  },
  {
    name: "hold",
    path: "/api/v1/nodes/:id/hold",
    about: "node",
    hasReason: true,
    description: "prevent all policies from acting on a node until release",
    example: 'node_42 --reason "disk is being swapped"',
    execute: (commands, id, reason) => commands.hold(id, reason),
  },
  {
    name: "release",
    path: "/api/v1/nodes/:id/release",
    about: "node",
    description:
      "release a node that an operator holds, whose quarantine was lifted by hand, or that a policy has given up",
    example: "node_42",
    execute: (commands, id) => commands.release(id),
  },
  {
    name: "reset-breaker",
    path: "/api/v1/breaker/reset",
    description: "close the circuit breaker, and restore the mode of policies that fell back to dry_run",
    execute: (commands) => commands.resetBreaker(),
  },
  {
    name: "accept-inventory",
    path: "/api/v1/inventory/accept",
    description: "accept the current inventory as the new baseline, after nodes were removed on purpose",
    execute: (commands) => commands.acceptInventory(),
  },
];

/** Dependencies of {@link operatorCommandRoutes}. Both are called for each request, because a reload may replace them. */
export interface OperatorCommandDeps {
  commands(): OperatorCommands;
  /** Without operators the routes don't exist. */
  operators(): readonly Operator[];
}

/** Returns the routes of all commands. They require the token of an operator. */
export const operatorCommandRoutes = (
  deps: OperatorCommandDeps,
  { log }: RouteDeps,
  guard: OperatorGuard,
): readonly Route[] =>
  operatorCommandTable.map((route) => ({
    method: "POST",
    path: route.path,
    access: "admin",
    exists: () => deps.operators().length > 0,
    authorize: guard.allows,
    async handle(request, reply) {
      const reason = readReason(request.body as Uint8Array | undefined, route);
      if (!reason.ok) return sendError(request, reply, 400, reason.error);
      const { id = "" } = request.params as { id?: string };
      const operator = guard.operatorOf(request);
      const done = await route.execute(onBehalfOf(deps.commands(), operator), id, reason.value);
      const about = route.about === undefined ? {} : { [route.about]: id };
      const fields = { order: route.name, operator, ...about, from: request.ip };
      if (done.ok) {
        log.info({ ...fields, ...(route.hasReason ? { reason: reason.value } : {}) }, "operator command executed");
        return { message: done.value };
      }
      if (done.error.kind === "unanswered") {
        log.warn({ ...fields, problem: done.error.message }, "operator command not answered yet");
        return reply.code(202).send({ message: done.error.message });
      }
      log.warn({ ...fields, refusal: done.error.message }, "operator command rejected");
      return sendError(request, reply, STATUS_BY_REJECTION[done.error.kind], done.error.message);
    },
  }));

const STATUS_BY_REJECTION: Readonly<Record<Exclude<CommandRejection["kind"], "unanswered">, number>> = {
  not_found: 404,
  conflict: 409,
  journal: 503,
};

/** Returns the commands as given by an operator; null: no operators are configured. */
export const onBehalfOf = (commands: OperatorCommands, operator: string | null): OperatorCommands =>
  operator === null ? commands : commands.as(operator);

const REASON_CHARS_MAX = 500;
const BODY_KEY_CHARS_MAX = 100;

/** Reads the reason from the body of a request, which is empty or a JSON object. */
function readReason(body: Uint8Array | undefined, route: OperatorCommandRoute): Result<string, string> {
  const parsed = parseObject(body);
  if (!parsed.ok) return parsed;
  for (const [key, value] of Object.entries(parsed.value)) {
    const problem = keyProblem(key, value, route.hasReason === true);
    if (problem !== null) return fail(`key ${JSON.stringify(key.slice(0, BODY_KEY_CHARS_MAX))}: ${problem}`);
  }
  return ok("reason" in parsed.value ? String(parsed.value.reason) : "no reason given");
}

function parseObject(body: Uint8Array | undefined): Result<object, string> {
  if (body === undefined || body.length === 0) return ok({});
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return ok(value);
  } catch {
    // Invalid UTF-8 or JSON; the error below does not quote it.
  }
  return fail('the body must be empty, or a JSON object such as {"reason": "maintenance"}');
}

function keyProblem(key: string, value: unknown, hasReason: boolean): string | null {
  if (!hasReason) return "this command takes no parameters";
  if (key !== "reason") return "the only known key is reason";
  const isText = typeof value === "string" && value.trim() !== "" && value.length <= REASON_CHARS_MAX;
  return isText && !/\p{Cc}/u.test(value)
    ? null
    : `it is one line of text of 1 to ${REASON_CHARS_MAX} characters; omit it if there is none`;
}
