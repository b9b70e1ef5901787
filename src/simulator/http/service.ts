import type { Fault, Scenario } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { bearerKey, createKeys, type Keys } from "../api/api-keys.ts";
import { type EndpointCall, type EndpointResult, endpointError, type ServiceBackend } from "../api/endpoint-context.ts";
import { createNodeOrder } from "../api/node-order.ts";
import { categoryOf, findRoute, type RouteMatch } from "../api/routes.ts";
import { advanceWorld, createWorld, replaceFaults } from "../network.ts";
import { compressReply } from "./compression.ts";
import {
  dateHeader,
  distortReply,
  errorReply,
  falseLimitHeaders,
  interceptedReply,
  limitHeaders,
  outcomeLabel,
  rateLimitedReply,
  resultReply,
} from "./error-replies.ts";
import { type ActiveFault, activeFaultsFor, clockSkewAt } from "./faults.ts";
import { createGatewayLimiters, type GatewayLimiters, gatewayReply } from "./gateway.ts";
import { type ApiLimits, type CustomLimits, checkLimits, createApiLimits, type LimitDecision } from "./rate-limits.ts";
import type { Reply, Request } from "./reply.ts";
import type { ClockAnchors } from "./time-anchor.ts";

/** How many replies there were, by endpoint (as the spec writes it) and by status or mishap. */
export type ReplyCounts = Map<string, Map<number | string, number>>;

/** The management service over a simulated network. It belongs to its caller, and {@link handleRequest} changes it in place. */
export interface SimulatedService extends ServiceBackend {
  readonly keys: Keys;
  readonly apiLimits: ApiLimits;
  readonly gatewayLimiters: GatewayLimiters;
  readonly replyCounts: ReplyCounts;
  readonly clockAnchors: ClockAnchors;
  /** Requests that arrived so far. */
  serial: number;
  /** Requests that a shell has begun and not finished. */
  inFlight: number;
  /** Puts another fault script in force; times are those since the start of the simulation. */
  setFaults(faults: readonly Fault[]): void;
}

/** Bodies that the service reads; its own are a reason and a number. */
const REQUEST_BODY_LENGTH_MAX = 65_536;

/**
 * The service as it is when the simulation starts, at `startMs` on its clock. The same scenario gives the same one. A
 * contract changes its limits.
 */
export function createService(scenario: Scenario, startMs: EpochMs, contract: CustomLimits = {}): SimulatedService {
  const world = createWorld(scenario, startMs);
  return {
    options: scenario.service,
    keys: createKeys(scenario.keys),
    world,
    nodeOrder: createNodeOrder(scenario.service.nodeList.order, world),
    apiLimits: createApiLimits(scenario.service, contract),
    gatewayLimiters: createGatewayLimiters(),
    replyCounts: new Map(),
    clockAnchors: new WeakMap(),
    serial: 0,
    inFlight: 0,
    setFaults: (faults) => replaceFaults(world, faults),
  };
}

/** A request is under way: it counts towards the plan's concurrent requests until {@link finishRequest}. */
export function beginRequest(service: SimulatedService): void {
  service.inFlight += 1;
}

/** A request is over, answered or not. */
export function finishRequest(service: SimulatedService): void {
  service.inFlight -= 1;
}

/**
 * Answers a request at `now`, after all that happened to the network by then. Reads no clock and does no IO: the same
 * requests at the same times get the same bytes. A `now` before an earlier one counts as that.
 */
export function handleRequest(service: SimulatedService, request: Request, now: EpochMs): Reply {
  advanceWorld(service.world, now);
  const at = service.world.now;
  const [pathname = "", query = ""] = request.path.split("?", 2);
  const destination = findRoute(request.method, pathname);
  service.serial += 1;
  const key = bearerKey(request.headers.authorization);
  const scopes = key === null ? undefined : service.keys.get(key);
  const account = scopes === undefined ? null : key;
  const activeFaults = activeFaultsFor(service.world.faultSchedule, request.method, request.path, service.serial, at);
  const inFront = gatewayReply(
    service.gatewayLimiters,
    activeFaults,
    at,
    at + clockSkewAt(service.world.faultSchedule, at),
  );
  if (inFront !== null) return finishReply(service, destination, inFront, {}, at);
  const limitDecision = checkLimits(service.apiLimits, account, categoryOf(pathname), service.inFlight, at);
  const call = {
    service,
    id: "",
    query: new URLSearchParams(query),
    body: request.body ?? "",
    at,
    activeFaults: activeFaults,
  };
  const reply =
    refusedByLimit(service, limitDecision) ??
    interceptRequest(activeFaults, at + clockSkewAt(service.world.faultSchedule, at)) ??
    resultReply(service.options, scopes === undefined ? UNKNOWN_KEY : answerRequest(call, destination, scopes));
  const whole = distortWithFaults(activeFaults, reply, limitDecision);
  const stated = statedLimits(service, limitDecision, whole, activeFaults, at);
  return compressReply(
    service.options.compression,
    request.headers["accept-encoding"],
    finishReply(service, destination, whole, stated, at),
  );
}

/** The X-RateLimit headers of a reply of the service itself. */
function statedLimits(
  { options, world }: SimulatedService,
  { refusedBy, verdict }: LimitDecision,
  reply: Reply,
  activeFaults: readonly ActiveFault[],
  at: EpochMs,
): Reply["headers"] {
  if (options.rateLimitHeaders === "off" && (refusedBy === null || reply.status !== 429)) return {};
  return {
    ...limitHeaders(verdict, clockSkewAt(world.faultSchedule, at)),
    ...falseLimitHeaders(activeFaults.map(({ fault }) => fault)),
  };
}

const UNKNOWN_KEY = endpointError(401, "unauthorized", "A valid API key is needed, as Authorization: Bearer API_KEY");

function refusedByLimit({ options }: SimulatedService, { refusedBy, verdict }: LimitDecision): Reply | null {
  if (refusedBy === null) return null;
  if (refusedBy === "rate" || options.planCapStatus === 429) {
    return rateLimitedReply(verdict.retryAfterSeconds, String(verdict.retryAfterSeconds));
  }
  const message =
    refusedBy === "month"
      ? `The plan's ${verdict.limit} calls of this month are used up`
      : `The plan allows ${verdict.limit} requests at once`;
  return errorReply(options, { status: 403, code: "plan_limit_exceeded", message });
}

function answerRequest(
  call: Omit<EndpointCall, "id">,
  destination: RouteMatch,
  scopes: ReadonlySet<string>,
): EndpointResult {
  switch (destination.kind) {
    case "nowhere":
      return endpointError(404, "not_found", "There is no such path; paths begin with /v1/nodes or /v1/sessions");
    case "method_not_allowed":
      return endpointError(405, "method_not_allowed", `This path has ${destination.allowed.join(", ")} alone`);
    case "endpoint": {
      const { route, id } = destination;
      if (!scopes.has(route.scope)) {
        return endpointError(403, "insufficient_scope", `The API key lacks the scope ${route.scope}`);
      }
      if (call.body.length > REQUEST_BODY_LENGTH_MAX) {
        return endpointError(413, "body_too_large", `The body is longer than ${REQUEST_BODY_LENGTH_MAX} characters`);
      }
      return route.answer({ ...call, id });
    }
    default:
      return destination satisfies never;
  }
}

function interceptRequest(activeFaults: readonly ActiveFault[], serviceNow: EpochMs): Reply | null {
  for (const { fault } of activeFaults) {
    const reply = interceptedReply(fault, serviceNow);
    if (reply !== null) return reply;
  }
  return null;
}

/** The limiter answers before anything behind it can go wrong with the reply. */
function distortWithFaults(activeFaults: readonly ActiveFault[], reply: Reply, { refusedBy }: LimitDecision): Reply {
  if (refusedBy !== null || reply.deliveryFault !== undefined) return reply;
  return activeFaults.reduce((changed, { fault }) => distortReply(fault, changed), reply);
}

/** Adds what every reply carries, and counts it. */
function finishReply(
  service: SimulatedService,
  destination: RouteMatch,
  reply: Reply,
  limits: Reply["headers"],
  at: EpochMs,
): Reply {
  const skewMs = clockSkewAt(service.world.faultSchedule, at);
  const endpoint = destination.kind === "endpoint" ? `${destination.route.method} ${destination.route.path}` : "other";
  const counts = service.replyCounts.get(endpoint) ?? new Map<number | string, number>();
  const label = outcomeLabel(reply);
  counts.set(label, (counts.get(label) ?? 0) + 1);
  service.replyCounts.set(endpoint, counts);
  return {
    ...reply,
    headers: {
      ...dateHeader(at + skewMs),
      ...limits,
      ...(destination.kind === "method_not_allowed" ? { allow: destination.allowed.join(", ") } : {}),
      ...reply.headers,
    },
  };
}
