import type { Fault, Scenario } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { type Admission, type Admittance, admit, type Contract, createAdmission } from "./rate-limits.ts";
import type { Anchors } from "./time-anchor.ts";
import { type Backend, type Call, type Outcome, refuse } from "../api/endpoint-context.ts";
import { compressed } from "./compression.ts";
import { type Strike, skewAt, strikes } from "./faults.ts";
import { createGateways, type Gateways, gatewayReply } from "./gateway.ts";
import { bearerKey, createKeys, type Keys } from "../api/api-keys.ts";
import { createNodeOrder } from "../api/node-order.ts";
import {
  dateHeader,
  distorted,
  falseLimitHeaders,
  interception,
  limitHeaders,
  outcomeLabel,
  outcomeReply,
  rateLimitedReply,
  refusalReply,
} from "./error-replies.ts";
import type { Reply, Request } from "./reply.ts";
import { categoryOf, type Destination, findRoute } from "../api/routes.ts";
import { advanceWorld, createWorld, replaceFaults } from "../network.ts";

/** How many replies there were, by endpoint (as the spec writes it) and by status or mishap. */
export type ReplyCounts = Map<string, Map<number | string, number>>;

/** The management service over a simulated network. It belongs to its caller, and {@link handle} changes it in place. */
export interface SimulatedService extends Backend {
  readonly keys: Keys;
  readonly admission: Admission;
  readonly gateways: Gateways;
  readonly replies: ReplyCounts;
  readonly anchors: Anchors;
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
export function createService(scenario: Scenario, startMs: EpochMs, contract: Contract = {}): SimulatedService {
  const world = createWorld(scenario, startMs);
  return {
    options: scenario.service,
    keys: createKeys(scenario.keys),
    world,
    nodeOrder: createNodeOrder(scenario.service.nodeList.order, world),
    admission: createAdmission(scenario.service, contract),
    gateways: createGateways(),
    replies: new Map(),
    anchors: new WeakMap(),
    serial: 0,
    inFlight: 0,
    setFaults: (faults) => replaceFaults(world, faults),
  };
}

/** A request is under way: it counts towards the plan's concurrent requests until {@link finish}. */
export function begin(service: SimulatedService): void {
  service.inFlight += 1;
}

/** A request is over, answered or not. */
export function finish(service: SimulatedService): void {
  service.inFlight -= 1;
}

/**
 * Answers a request at `now`, after all that happened to the network by then. Reads no clock and does no IO: the same
 * requests at the same times get the same bytes. A `now` before an earlier one counts as that.
 */
export function handle(service: SimulatedService, request: Request, now: EpochMs): Reply {
  advanceWorld(service.world, now);
  const at = service.world.now;
  const [pathname = "", query = ""] = request.path.split("?", 2);
  const destination = findRoute(request.method, pathname);
  service.serial += 1;
  const key = bearerKey(request.headers.authorization);
  const scopes = key === null ? undefined : service.keys.get(key);
  const account = scopes === undefined ? null : key;
  const struckBy = strikes(service.world.script, request.method, request.path, service.serial, at);
  const inFront = gatewayReply(service.gateways, struckBy, at, at + skewAt(service.world.script, at));
  if (inFront !== null) return sent(service, destination, inFront, {}, at);
  const admittance = admit(service.admission, account, categoryOf(pathname), service.inFlight, at);
  const call = { service, id: "", query: new URLSearchParams(query), body: request.body ?? "", at, strikes: struckBy };
  const reply =
    refusedByLimit(service, admittance) ??
    intercepted(struckBy, at + skewAt(service.world.script, at)) ??
    outcomeReply(service.options, scopes === undefined ? UNKNOWN_KEY : answer(call, destination, scopes));
  const whole = distortedBy(struckBy, reply, admittance);
  const stated = statedLimits(service, admittance, whole, struckBy, at);
  return compressed(
    service.options.compression,
    request.headers["accept-encoding"],
    sent(service, destination, whole, stated, at),
  );
}

/** The X-RateLimit headers of a reply of the service itself. */
function statedLimits(
  { options, world }: SimulatedService,
  { refusedBy, verdict }: Admittance,
  reply: Reply,
  struckBy: readonly Strike[],
  at: EpochMs,
): Reply["headers"] {
  if (options.rateLimitHeaders === "off" && (refusedBy === null || reply.status !== 429)) return {};
  return {
    ...limitHeaders(verdict, skewAt(world.script, at)),
    ...falseLimitHeaders(struckBy.map(({ fault }) => fault)),
  };
}

const UNKNOWN_KEY = refuse(401, "unauthorized", "A valid API key is needed, as Authorization: Bearer API_KEY");

function refusedByLimit({ options }: SimulatedService, { refusedBy, verdict }: Admittance): Reply | null {
  if (refusedBy === null) return null;
  if (refusedBy === "rate" || options.planCapStatus === 429) {
    return rateLimitedReply(verdict.retryAfterSeconds, String(verdict.retryAfterSeconds));
  }
  const message =
    refusedBy === "month"
      ? `The plan's ${verdict.limit} calls of this month are used up`
      : `The plan allows ${verdict.limit} requests at once`;
  return refusalReply(options, { status: 403, code: "plan_limit_exceeded", message });
}

function answer(call: Omit<Call, "id">, destination: Destination, scopes: ReadonlySet<string>): Outcome {
  switch (destination.kind) {
    case "nowhere":
      return refuse(404, "not_found", "There is no such path; paths begin with /v1/nodes or /v1/sessions");
    case "method_not_allowed":
      return refuse(405, "method_not_allowed", `This path has ${destination.allowed.join(", ")} alone`);
    case "endpoint": {
      const { route, id } = destination;
      if (!scopes.has(route.scope)) {
        return refuse(403, "insufficient_scope", `The API key lacks the scope ${route.scope}`);
      }
      if (call.body.length > REQUEST_BODY_LENGTH_MAX) {
        return refuse(413, "body_too_large", `The body is longer than ${REQUEST_BODY_LENGTH_MAX} characters`);
      }
      return route.answer({ ...call, id });
    }
    default:
      return destination satisfies never;
  }
}

function intercepted(struckBy: readonly Strike[], serviceNow: EpochMs): Reply | null {
  for (const { fault } of struckBy) {
    const reply = interception(fault, serviceNow);
    if (reply !== null) return reply;
  }
  return null;
}

/** The limiter answers before anything behind it can go wrong with the reply. */
function distortedBy(struckBy: readonly Strike[], reply: Reply, { refusedBy }: Admittance): Reply {
  if (refusedBy !== null || reply.mishap !== undefined) return reply;
  return struckBy.reduce((changed, { fault }) => distorted(fault, changed), reply);
}

/** Adds what every reply carries, and counts it. */
function sent(
  service: SimulatedService,
  destination: Destination,
  reply: Reply,
  limits: Reply["headers"],
  at: EpochMs,
): Reply {
  const skewMs = skewAt(service.world.script, at);
  const endpoint = destination.kind === "endpoint" ? `${destination.route.method} ${destination.route.path}` : "other";
  const counts = service.replies.get(endpoint) ?? new Map<number | string, number>();
  const label = outcomeLabel(reply);
  counts.set(label, (counts.get(label) ?? 0) + 1);
  service.replies.set(endpoint, counts);
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
