import { MINUTE_MS } from "../../base/duration.ts";
import { ok, type Result } from "../../base/result.ts";
import type { BadDetail } from "../../config/schema/scenario.ts";
import { findNode, quarantine, reboot } from "../fleet/fleet.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import { badDetailFault } from "../http/faults.ts";
import { nodesAt } from "../sessions/count-history.ts";
import { cutSessions } from "../sessions/traffic.ts";
import {
  type EndpointCall,
  type EndpointError,
  type EndpointResult,
  endpointError,
  findFault,
} from "./endpoint-context.ts";
import { nodesInOrder } from "./list-order.ts";
import { detailedNode, listedNode } from "./node-view.ts";
import { answerPage, missingPositions, PATTERN_LENGTH } from "./paging.ts";

/** 30 days. The spec states no maximum. */
const QUARANTINE_MINUTES_MAX = 43_200;
const REASON_LENGTH_MAX = 500;

/** GET /v1/nodes (spec, section 4.1). */
export function listNodes(call: EndpointCall): EndpointResult {
  const { service, at } = call;
  const options = service.options.nodeList;
  const seenUntil = reportsKnownUntil(call);
  const nodes = nodesInOrder(service, at, seenUntil);
  const lagging = options.totalLagMs === 0 ? null : nodesAt(service.network.countHistory, at - options.totalLagMs);
  return answerPage(call, {
    options,
    length: nodes.length,
    counted: lagging ?? nodes.length,
    slice: (from, to) => nodes.slice(from, to),
    recordOf: (node) => listedNode(service, node, at, seenUntil),
  });
}

/** GET /v1/nodes/{id} (spec, section 4.2). */
export function readNode(call: EndpointCall): EndpointResult {
  const node = nodeOf(call);
  if (!node.ok) return node;
  const bad = badDetailFault(call.activeFaults, call.service.network.seed, node.value.index);
  if (bad !== null) return badDetailResult(call, bad.answer);
  return ok({ status: 200, value: detailedNode(call.service, node.value, call.at, reportsKnownUntil(call)) });
}

/**
 * POST /v1/nodes/{id}/quarantine (spec, section 4.3). Both fields are required. A second quarantine replaces the first.
 */
export function quarantineNode(call: EndpointCall): EndpointResult {
  const node = nodeOf(call);
  if (!node.ok) return node;
  const body = readBody(call);
  if (!body.ok) return body;
  const { reason, duration_minutes: minutes } = body.value;
  if (typeof reason !== "string" || reason === "" || reason.length > REASON_LENGTH_MAX) {
    return endpointError(400, "invalid_reason", `reason must be a string of 1 to ${REASON_LENGTH_MAX} characters`);
  }
  if (!isInteger(minutes) || minutes < 1 || minutes > QUARANTINE_MINUTES_MAX) {
    const message = `duration_minutes must be an integer from 1 to ${QUARANTINE_MINUTES_MAX}`;
    return endpointError(400, "invalid_duration_minutes", message);
  }
  const { network } = call.service;
  // The sessions are cut first to count them, since the quarantine would end them without a count.
  const disconnected = cutSessions(network.traffic, node.value, call.at - network.startMs, "closed");
  const isEnding = call.service.options.quarantineEnd === "duration";
  const servedMinutes = Math.min(minutes, call.service.options.quarantineMinutesMax);
  const until = isEnding ? call.at + servedMinutes * MINUTE_MS : Number.MAX_SAFE_INTEGER;
  quarantine(network.fleet, node.value, until, call.at);
  return ok({
    status: 200,
    value: {
      success: true,
      message: `Node ${node.value.id} has been quarantined`,
      reason,
      duration_minutes: minutes,
      disconnected_sessions: disconnected,
    },
  });
}

/** POST /v1/nodes/{id}/reboot (spec, section 4.4). Answers 409 while the node is rebooting. */
export function rebootNode(call: EndpointCall): EndpointResult {
  const node = nodeOf(call);
  if (!node.ok) return node;
  const body = readBody(call);
  if (!body.ok) return body;
  const { force = false } = body.value;
  if (typeof force !== "boolean") return endpointError(400, "invalid_force", "force must be true or false");
  const { id, status } = node.value;
  if (status === "rebooting") return endpointError(409, "node_rebooting", `Node ${id} is already rebooting`);
  reboot(call.service.network.fleet, node.value, force, call.at);
  return actionResult(call, { message: `${force ? "Forced" : "Graceful"} reboot of node ${id} requested`, force });
}

/** POST /v1/nodes/{id}/disconnect (spec, section 4.5). Ignores the request body. */
export function disconnectNode(call: EndpointCall): EndpointResult {
  const node = nodeOf(call);
  if (!node.ok) return node;
  const { network } = call.service;
  const count = cutSessions(network.traffic, node.value, call.at - network.startMs, "closed");
  const message = `All sessions of node ${node.value.id} have been disconnected`;
  return actionResult(call, { message, disconnected_sessions: count });
}

/** Answers reboot and disconnect. The spec does not show these replies, so an option chooses their form. */
function actionResult({ service }: EndpointCall, fields: Readonly<Record<string, unknown>>): EndpointResult {
  switch (service.options.actionReply) {
    case "success":
      return ok({ status: 200, value: { success: true, ...fields } });
    case "empty_object":
      return ok({ status: 200, value: {} });
    case "no_content":
      return ok({ status: 204 });
    default:
      return service.options.actionReply satisfies never;
  }
}

function nodeOf(call: EndpointCall): Result<SimulatedNode, EndpointError> {
  const node = findNode(call.service.network.fleet, call.id);
  return node === null || isHidden(call, node)
    ? unknownNode(call.service.options.unknownNodeStatus, call.id)
    : ok(node);
}

/** Returns whether the fault `vanished` hides the node. A hidden node is not found by its id either. */
function isHidden(call: EndpointCall, node: SimulatedNode): boolean {
  if (findFault(call.activeFaults, "vanished") === null) return false;
  const position = nodesInOrder(call.service, call.at, reportsKnownUntil(call)).indexOf(node);
  return missingPositions(call).has(position % PATTERN_LENGTH);
}

const unknownNode = (status: number, id: string) =>
  endpointError(status, "node_not_found", `There is no node ${JSON.stringify(id)}`);

function badDetailResult({ id }: EndpointCall, answer: BadDetail): EndpointResult {
  switch (answer) {
    case "not_found":
      return unknownNode(404, id);
    case "unreadable":
      return ok({ status: 200, value: { error: "node_unavailable" } });
    case "server_error":
      return endpointError(500, "internal_error", `Node ${JSON.stringify(id)} cannot be read`);
    default:
      return answer satisfies never;
  }
}

/** Parses the body. An empty body is an empty object; any other value than an object is an error. */
function readBody({ body }: EndpointCall): Result<Readonly<Record<string, unknown>>, EndpointError> {
  if (body === "") return ok({});
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return ok({ ...value });
  } catch {
    return endpointError(400, "invalid_json", "The body is not JSON");
  }
  return endpointError(400, "invalid_body", "The body must be a JSON object");
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);

/**
 * Returns the time after which the service knows no reports, which is the start of the fault `stale_last_seen` if it is
 * active.
 */
const reportsKnownUntil = ({ activeFaults }: EndpointCall): number =>
  findFault(activeFaults, "stale_last_seen")?.sinceMs ?? Number.POSITIVE_INFINITY;
