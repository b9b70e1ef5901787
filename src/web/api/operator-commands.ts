import { fail, ok, type Result } from "../../base/result.ts";
import type { CommandRejection, OperatorCommands } from "../../remediation/status/views.ts";

/** One thing that a person may order: a route, and a command of the same name. */
export interface OperatorCommandRoute {
  readonly name: string;
  /** Where it is posted; `:id` stands for what it is about. */
  readonly path: string;
  /** What it is about; null: the daemon as a whole. */
  readonly about: "action" | "node" | null;
  /** Whether it takes a reason, which may always be left out. */
  readonly hasReason: boolean;
  execute(orders: OperatorCommands, id: string, reason: string): Result<string, CommandRejection>;
}

/** Every order, a row each. */
export const operatorCommandTable = [
  {
    name: "pause",
    path: "/api/v1/pause",
    about: null,
    hasReason: true,
    execute: (orders, _id, reason) => orders.pause(reason),
  },
  {
    name: "resume",
    path: "/api/v1/resume",
    about: null,
    hasReason: false,
    execute: (orders) => orders.resume(),
  },
  {
    name: "approve",
    path: "/api/v1/actions/:id/approve",
    about: "action",
    hasReason: false,
    execute: (orders, id) => orders.approve(id),
  },
  {
    name: "reject",
    path: "/api/v1/actions/:id/reject",
    about: "action",
    hasReason: true,
    execute: (orders, id, reason) => orders.reject(id, reason),
  },
  {
    name: "hold",
    path: "/api/v1/nodes/:id/hold",
    about: "node",
    hasReason: true,
    execute: (orders, id, reason) => orders.hold(id, reason),
  },
  {
    name: "release",
    path: "/api/v1/nodes/:id/release",
    about: "node",
    hasReason: false,
    execute: (orders, id) => orders.release(id),
  },
  {
    name: "reset-breaker",
    path: "/api/v1/breaker/reset",
    about: null,
    hasReason: false,
    execute: (orders) => orders.resetBreaker(),
  },
  {
    name: "accept-inventory",
    path: "/api/v1/inventory/accept",
    about: null,
    hasReason: false,
    execute: (orders) => orders.acceptInventory(),
  },
] as const satisfies readonly OperatorCommandRoute[];

/** Name of an order. */
export type OperatorCommandRouteName = (typeof operatorCommandTable)[number]["name"];

const REASON_CHARS_MAX = 500;
const BODY_KEY_CHARS_MAX = 100;
const DEFAULT_REASON = "no reason given";

/**
 * Reads the reason out of an order's body: nothing at all, or a JSON object. The error names what is wrong, and what
 * would be right.
 */
export function readReason(body: Uint8Array | undefined, { hasReason }: Pick<OperatorCommandRoute, "hasReason">) {
  const parsed = parseObject(body);
  if (!parsed.ok) return parsed;
  for (const [key, value] of Object.entries(parsed.value)) {
    const problem = keyProblem(key, value, hasReason);
    if (problem !== null) return fail(`key ${JSON.stringify(key.slice(0, BODY_KEY_CHARS_MAX))}: ${problem}`);
  }
  return ok("reason" in parsed.value ? String(parsed.value.reason) : DEFAULT_REASON);
}

function parseObject(body: Uint8Array | undefined): Result<Readonly<Record<string, unknown>>, string> {
  if (body === undefined || body.length === 0) return ok({});
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return ok(value as Readonly<Record<string, unknown>>);
    }
  } catch {
    // Said below, without what it holds.
  }
  return fail('the body must be empty, or a JSON object such as {"reason": "maintenance"}');
}

function keyProblem(key: string, value: unknown, hasReason: boolean): string | null {
  if (!hasReason) return "this command takes no parameters";
  if (key !== "reason") return "the only known key is reason";
  const isGood = typeof value === "string" && value.trim() !== "" && value.length <= REASON_CHARS_MAX;
  return isGood && !/\p{Cc}/u.test(value)
    ? null
    : `it is one line of text of 1 to ${REASON_CHARS_MAX} characters; omit it if there is none`;
}
