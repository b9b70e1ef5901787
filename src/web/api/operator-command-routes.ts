import { DAY_MS, type DurationMs, formatDuration, parseDuration } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { ID_PREFIX } from "../../model/node.ts";
import type { CommandRejection, OperatorCommand } from "../../model/remediation/operator-command.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { slotsById } from "../../policy/cel/field-readers.ts";
import type { OperatorGuard } from "../http/auth/operator-guard.ts";
import { sendError } from "../http/response.ts";
import type { Route, WebContext } from "../http/route.ts";

/** A command of an operator: a route, and a CLI command of the same name. */
export interface OperatorCommandRoute {
  readonly name: OperatorCommand["command"];
  /** Path of the route, where `:id` is the id of the object that `about` names. */
  readonly path: string;
  /** Kind of object the command applies to. Absent means the whole daemon. */
  readonly about?: "action" | "node";
  /** Whether it takes an optional reason. Defaults to false. */
  readonly hasReason?: true;
  /** Whether its effect can be limited to a duration. Defaults to false. */
  readonly hasDuration?: true;
  /** Help of the CLI command, and the arguments of its example. */
  readonly description: string;
  readonly example?: string;
}

/** All operator commands. */
export const operatorCommandTable: readonly OperatorCommandRoute[] = [
  {
    name: "pause",
    path: "/api/v1/pause",
    hasReason: true,
    hasDuration: true,
    description: "hold all actions until resume, or for a given time; polling continues",
    example: '--for 30m --reason "deploy"',
  },
  {
    name: "resume",
    path: "/api/v1/resume",
    description: "end a pause",
  },
  {
    name: "approve",
    path: "/api/v1/actions/:id/approve",
    about: "action",
    description: "approve an action that waits for approval; to list such actions, run approvals",
    example: "act-12",
  },
  {
    name: "reject",
    path: "/api/v1/actions/:id/reject",
    about: "action",
    hasReason: true,
    description: "reject an action that waits for approval, or was approved and is not being sent yet",
    example: 'act-12 --reason "the carrier is on it"',
  },
  {
    name: "hold",
    path: "/api/v1/nodes/:id/hold",
    about: "node",
    hasReason: true,
    hasDuration: true,
    description: "keep all policies from acting on a node (id or name), until release or for a given time",
    example: 'node_42 --for 2h --reason "disk is being swapped"',
  },
  {
    name: "release",
    path: "/api/v1/nodes/:id/release",
    about: "node",
    description:
      "let policies act again on a node (id or name) that was held or given up on, whose step was rejected, whose quarantine was lifted manually, or on which another client acted",
    example: "node_42",
  },
  {
    name: "reset-breaker",
    path: "/api/v1/breaker/reset",
    description: "close the circuit breaker, and restore the mode of policies that fell back to dry_run",
  },
  {
    name: "accept-inventory",
    path: "/api/v1/inventory/accept",
    description:
      "accept that missing nodes are gone for good (removed, or lost after an action), and that nodes and sessions that a list counts but does not show do not exist",
  },
];

/** Returns the routes of all commands. They require the token of an operator. */
export const operatorCommandRoutes = (
  { log, operators, fleet, execute }: WebContext,
  guard: OperatorGuard,
): readonly Route[] =>
  operatorCommandTable.map((route) => ({
    method: "POST",
    path: route.path,
    access: "admin",
    exists: () => operators().length > 0,
    authorize: guard.allows,
    async handle(request, reply) {
      const parameters = readParameters(request.body as Uint8Array | undefined, route);
      if (!parameters.ok) return sendError(request, reply, 400, parameters.error);
      const { id: target = "" } = request.params as { id?: string };
      if (route.about !== undefined && target.trim() === "") {
        const example = route.path.replace(":id", "ID");
        const problem = `the path needs the id of the ${route.about}, as in ${example}, but the id is empty`;
        return sendError(request, reply, 400, problem);
      }
      if (route.name === "hold" && !isNodeId(target, fleet())) {
        const lookup = `GET /api/v1/nodes?node=${encodeURIComponent(target)}`;
        const problem = `no node with the id ${JSON.stringify(target)}; ids begin with ${ID_PREFIX} (to find the id: ${lookup})`;
        return sendError(request, reply, 404, problem);
      }
      const operator = guard.operatorOf(request);
      const done = await execute({ command: route.name, target, operator, ...parameters.value });
      const about = route.about === undefined ? {} : { [route.about]: target };
      const fields = { command: route.name, operator, ...about, from: request.ip };
      if (done.ok) {
        const { reason, forMs } = parameters.value;
        const given = {
          ...(route.hasReason ? { reason } : {}),
          ...(forMs === null ? {} : { for: formatDuration(forMs) }),
        };
        log.info({ ...fields, ...given }, "operator command executed");
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

/** Returns whether a text is the id of a node, or may be the id of a node that the daemon does not know. */
const isNodeId = (text: string, fleet: Fleet | null): boolean =>
  text.startsWith(ID_PREFIX) || (fleet !== null && slotsById(fleet).has(text));

const STATUS_BY_REJECTION: Readonly<Record<Exclude<CommandRejection["kind"], "unanswered">, number>> = {
  not_found: 404,
  conflict: 409,
  journal: 503,
  stopping: 503,
};

const REASON_CHARS_MAX = 500;
const BODY_KEY_CHARS_MAX = 100;
/** Longest duration of a pause or hold, because longer ones are probably mistyped. */
const EFFECT_MS_MAX: DurationMs = 365 * DAY_MS;

/** Reads the parameters from the body of a request, which is empty or a JSON object. */
function readParameters(
  body: Uint8Array | undefined,
  route: OperatorCommandRoute,
): Result<{ readonly reason: string; readonly forMs: DurationMs | null }, string> {
  const parsed = parseObject(body);
  if (!parsed.ok) return parsed;
  for (const [key, value] of Object.entries(parsed.value)) {
    const problem = keyProblem(key, value, route);
    if (problem !== null) return fail(`key ${JSON.stringify(key.slice(0, BODY_KEY_CHARS_MAX))}: ${problem}`);
  }
  const defaultReason = route.hasReason ? "no reason given" : "";
  const { reason = defaultReason, for: duration } = parsed.value as { reason?: string; for?: unknown };
  if (duration === undefined) return ok({ reason, forMs: null });
  const forMs = readEffectDuration(duration);
  return forMs.ok ? ok({ reason, forMs: forMs.value }) : fail(`key "for": ${forMs.error}`);
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

function keyProblem(key: string, value: unknown, { hasReason, hasDuration }: OperatorCommandRoute): string | null {
  if (!hasReason) return "this command takes no parameters";
  if (key === "for" && hasDuration) return null;
  if (key !== "reason") return hasDuration ? "the known keys are reason and for" : "the only known key is reason";
  const reason = readReason(value);
  return reason.ok ? null : reason.error;
}

/** Reads the reason of a command. The error says what is valid. */
export function readReason(value: unknown): Result<string, string> {
  const isText = typeof value === "string" && value.trim() !== "" && value.length <= REASON_CHARS_MAX;
  return isText && !/\p{Cc}/u.test(value)
    ? ok(value)
    : fail(`must be one line of text of 1 to ${REASON_CHARS_MAX} characters; omit it if there is none`);
}

/** Reads how long the effect of a command lasts. The error says what is valid. */
export function readEffectDuration(value: unknown): Result<DurationMs, string> {
  const parsed = typeof value === "string" ? parseDuration(value) : null;
  if (parsed?.ok && parsed.value > 0 && parsed.value <= EFFECT_MS_MAX) return parsed;
  return fail(
    `must be a duration such as 30m or 2h, greater than 0 and at most ${formatDuration(EFFECT_MS_MAX)}; omit it if there is no end`,
  );
}
