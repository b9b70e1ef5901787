import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Fault, Scenario } from "../../config/schema/scenario.ts";
import type { Clock } from "../../model/ports.ts";
import type { EpochMs } from "../../model/time.ts";
import {
  type EndpointCall,
  type EndpointResult,
  endpointError,
  findFault,
  type ServiceBackend,
} from "../api/endpoint-context.ts";
import { categoryOf, findRoute, type RouteMatch } from "../api/routes.ts";
import { hash } from "../hash.ts";
import { advanceNetwork, createNetwork, replaceFaults } from "../network.ts";
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
import { type ActiveFault, activeFaultsFor, clockSkewAt, dateOffsetOf } from "./faults.ts";
import { type GatewayLimiters, gatewayReply } from "./gateway.ts";
import { type ApiLimits, type CustomLimits, checkLimits, createApiLimits, type LimitDecision } from "./rate-limits.ts";
import { compressReply, type Reply, type Request } from "./reply.ts";

/** Number of replies of one kind. */
export interface ReplyCount {
  /** Method and path template in the spec, or "other" for unknown paths. */
  readonly endpoint: string;
  /** The status, or the fault of an incomplete reply (hang, reset or truncate). */
  readonly status: number | string;
  readonly count: number;
}

/** Offset of a service's time from the monotonic time of each clock that drives it. */
type ClockAnchors = WeakMap<Clock, number>;

/** The management service of a simulated network. {@link handleRequest} changes it in place. */
export interface SimulatedService extends ServiceBackend {
  /** Scopes by API key. */
  readonly keys: ReadonlyMap<string, ReadonlySet<string>>;
  readonly apiLimits: ApiLimits;
  readonly gatewayLimiters: GatewayLimiters;
  /** The replies so far, by endpoint and status. */
  readonly replyCounts: Map<string, ReplyCount>;
  readonly clockAnchors: ClockAnchors;
  /** Bodies that the fault `cached` keeps, by path. */
  readonly cachedBodies: Map<string, { readonly body: Reply["body"]; readonly at: EpochMs }>;
  /** Number of requests so far. */
  serial: number;
  /** Number of requests whose clients are waiting. */
  inFlight: number;
  /**
   * When the service finishes each of the requests whose clients are no longer waiting. They count as concurrent until
   * then.
   */
  abandoned: readonly EpochMs[];
  /** Replaces the faults. Times are since the start of the simulation. */
  setFaults(faults: readonly Fault[]): void;
}

/** Maximum length of a request body, in characters. */
const REQUEST_BODY_LENGTH_MAX = 65_536;

/**
 * Creates the service at the start of the simulation, `startMs` on its clock. The same scenario gives the same service.
 * `customLimits` replace those of the spec.
 */
export function createService(scenario: Scenario, startMs: EpochMs, customLimits: CustomLimits = {}): SimulatedService {
  const network = createNetwork(scenario, startMs);
  return {
    options: scenario.service,
    keys: new Map(scenario.keys.map(({ key, scopes }) => [key, new Set(scopes)])),
    network,
    apiLimits: createApiLimits(scenario.service, customLimits),
    gatewayLimiters: new WeakMap(),
    replyCounts: new Map(),
    clockAnchors: new WeakMap(),
    cachedBodies: new Map(),
    serial: 0,
    inFlight: 0,
    abandoned: [],
    setFaults: (faults) => replaceFaults(network, faults),
  };
}

/** Returns the numbers of replies so far, grouped by endpoint. */
export const replyCounts = (service: SimulatedService): ReplyCount[] =>
  [...Map.groupBy(service.replyCounts.values(), ({ endpoint }) => endpoint).values()].flat();

/** Returns the number of requests that were answered with 429. */
export const rateLimitedCount = (service: SimulatedService): number =>
  replyCounts(service).reduce((sum, { status, count }) => sum + (status === 429 ? count : 0), 0);

/** The service works for this long on a request that it never answers. */
const HANG_MS: DurationMs = MINUTE_MS;

/** Counts a request as concurrent until {@link finishRequest}. */
export function beginRequest(service: SimulatedService): void {
  service.inFlight += 1;
}

/** Returns when the service finishes a request that was handled at `at`, even if its client no longer waits. */
export const servedUntil = ({ deliveryFault }: Reply, at: EpochMs): EpochMs =>
  deliveryFault?.kind === "hang" ? at + HANG_MS : at;

/** Ends the exchange with a client, answered or not. `servedUntil` is when the service finishes the request. */
export function finishRequest(service: SimulatedService, servedUntil: EpochMs): void {
  service.inFlight -= 1;
  service.abandoned = [...service.abandoned, servedUntil].filter((until) => until > service.network.now);
}

/** Returns the number of requests that the service is working on. */
export const concurrentRequests = ({ inFlight, abandoned, network }: SimulatedService): number =>
  inFlight + abandoned.filter((until) => until > network.now).length;

/**
 * Answers a request at `now`, after advancing the network to that time. It reads no clock and does no IO, so the same
 * requests at the same times get the same bytes. If `now` is before that of an earlier call, the latest one is used.
 */
export function handleRequest(service: SimulatedService, request: Request, now: EpochMs): Reply {
  advanceNetwork(service.network, now);
  const at = service.network.now;
  const [pathname = "", query = ""] = request.path.split("?", 2);
  const destination = findRoute(request.method, pathname);
  service.serial += 1;
  const [, key = ""] = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? "") ?? [];
  const scopes = service.keys.get(key);
  const account = scopes === undefined ? null : key;
  const activeFaults = activeFaultsFor(service.network.faultSchedule, request.method, request.path, service.serial, at);
  const serviceNow = at + clockSkewAt(service.network.faultSchedule, at);
  const gatewayAnswer = gatewayReply(service.gatewayLimiters, activeFaults, at, serviceNow);
  if (gatewayAnswer !== null)
    return finishReply(service, destination, gatewayAnswer, {}, at, dateOffsetOf(activeFaults));
  const instance = hash(service.network.seed ^ 0x1a57, service.serial) % service.options.instances;
  const inFlight = concurrentRequests(service);
  const decision = checkLimits(service.apiLimits, account, categoryOf(pathname), inFlight, at, instance);
  const call = {
    service,
    id: "",
    query: new URLSearchParams(query),
    body: request.body ?? "",
    at,
    activeFaults,
  };
  const reply =
    refusedByLimit(service, decision) ??
    interceptRequest(activeFaults, serviceNow) ??
    resultReply(service.options, scopes === undefined ? UNKNOWN_KEY : answerRequest(call, destination, scopes));
  const cached = request.method === "GET" ? cachedReply(service, activeFaults, request.path, reply) : reply;
  const distorted = distortWithFaults(activeFaults, cached, decision, serviceNow);
  const limits = statedLimits(service, decision, distorted, activeFaults, at);
  return compressReply(
    service.options.compression,
    request.headers["accept-encoding"],
    finishReply(service, destination, distorted, limits, at, dateOffsetOf(activeFaults)),
  );
}

/** Returns the X-RateLimit headers of a reply that does not come from a gateway. */
function statedLimits(
  { options, network }: SimulatedService,
  { refusedBy, verdict }: LimitDecision,
  reply: Reply,
  activeFaults: readonly ActiveFault[],
  at: EpochMs,
): Reply["headers"] {
  if (options.rateLimitHeaders === "off" && (refusedBy === null || reply.status !== 429)) return {};
  return {
    ...limitHeaders(options, verdict, clockSkewAt(network.faultSchedule, at)),
    ...falseLimitHeaders(activeFaults.map(({ fault }) => fault)),
  };
}

const UNKNOWN_KEY = endpointError(
  401,
  "unauthorized",
  "A valid API key is required in the header Authorization: Bearer API_KEY",
);

function refusedByLimit({ options }: SimulatedService, { refusedBy, verdict }: LimitDecision): Reply | null {
  if (refusedBy === null) return null;
  if (refusedBy === "rate" || options.planCapStatus === 429) {
    return rateLimitedReply(verdict.retryAfterSeconds, String(verdict.retryAfterSeconds));
  }
  const message =
    refusedBy === "month"
      ? `The plan's ${verdict.limit} calls for this month are used up`
      : `The plan allows ${verdict.limit} concurrent requests`;
  return errorReply(options, { status: 403, code: "plan_limit_exceeded", message });
}

function answerRequest(
  call: Omit<EndpointCall, "id">,
  destination: RouteMatch,
  scopes: ReadonlySet<string>,
): EndpointResult {
  switch (destination.kind) {
    case "not_found":
      return endpointError(404, "not_found", "There is no such path; paths start with /v1/nodes or /v1/sessions");
    case "method_not_allowed":
      return endpointError(405, "method_not_allowed", `This path allows only ${destination.allowed.join(", ")}`);
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

/** Returns the reply with the body that the fault `cached` keeps for the path, if it is active. */
function cachedReply(
  { cachedBodies, network: { now } }: SimulatedService,
  activeFaults: readonly ActiveFault[],
  path: string,
  reply: Reply,
): Reply {
  const fault = findFault(activeFaults, "cached");
  if (fault === null || reply.status !== 200) return reply;
  const cached = cachedBodies.get(path);
  if (cached !== undefined && cached.at >= fault.sinceMs && now - cached.at < fault.maxAgeMs)
    return { ...reply, body: cached.body };
  cachedBodies.set(path, { body: reply.body, at: now });
  return reply;
}

/** Applies the faults to a reply, unless a limit rejected the request. */
function distortWithFaults(
  activeFaults: readonly ActiveFault[],
  reply: Reply,
  { refusedBy }: LimitDecision,
  serviceNow: EpochMs,
): Reply {
  if (refusedBy !== null || reply.deliveryFault !== undefined) return reply;
  return activeFaults.reduce((changed, { fault }) => distortReply(fault, changed, serviceNow), reply);
}

/** Adds the headers of every reply, and counts the reply. */
function finishReply(
  service: SimulatedService,
  destination: RouteMatch,
  reply: Reply,
  limits: Reply["headers"],
  at: EpochMs,
  dateOffsetMs: number,
): Reply {
  const skewMs = clockSkewAt(service.network.faultSchedule, at) + dateOffsetMs;
  const endpoint = destination.kind === "endpoint" ? `${destination.route.method} ${destination.route.path}` : "other";
  const status = outcomeLabel(reply);
  const kind = `${endpoint} ${status}`;
  service.replyCounts.set(kind, { endpoint, status, count: (service.replyCounts.get(kind)?.count ?? 0) + 1 });
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

/**
 * Returns the service's time, driven by the monotonic time of `clock`, so that a step of the client's wall clock does
 * not change it. All servers and transports of a service on the same clock share the time.
 */
export function serviceTime(anchors: ClockAnchors, clock: Clock): () => EpochMs {
  const offset = anchors.get(clock) ?? clock.now() - clock.monotonic();
  anchors.set(clock, offset);
  return () => Math.floor(offset + clock.monotonic());
}
