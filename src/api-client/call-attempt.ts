import { type DurationMs, formatSecondsLeft, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { EndpointLabel } from "../model/label-values.ts";
import type {
  Clock,
  Secret,
  Transport,
  TransportFailure,
  TransportRequest,
  TransportResponse,
} from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { availabilityOf } from "../rate-limit/availability.ts";
import type { Ledger, Permit } from "../rate-limit/ledger.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import type { CallOutcome } from "../rate-limit/permits.ts";
import type { LimitReading } from "../rate-limit/stated-limit.ts";
import { type ActionCall, type Call, ENDPOINTS } from "./endpoints.ts";
import type { ApiError } from "./errors.ts";
import { parseRateLimitHeaders, resetEpochSeconds, retryAfterOf, serviceDate } from "./rate-limit-headers.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import type { ServiceClock } from "./service-clock.ts";
import { startTimeout } from "./timeout.ts";

/** Dependencies of an attempt. */
export interface CallAttemptDeps {
  readonly transport: Transport;
  readonly rateLimiter: RateLimiter;
  readonly clock: Clock;
  readonly secret: Secret;
  readonly timeoutMs: DurationMs;
  /** Absent for commands, which export no metrics. */
  readonly metrics?: Pick<DaemonMetrics, "inc" | "set" | "observe">;
  /** Sent as User-Agent. */
  readonly agent: string;
  readonly serviceClock: ServiceClock;
}

/** Result of one attempt to make a call. */
export type CallAttempt =
  | {
      readonly kind: "answered";
      readonly response: TransportResponse;
      /** When its content was observed: see {@link ServiceClock.recordDate}. */
      readonly observedAt: MonotonicMs;
      /** When it had arrived. */
      readonly receivedAt: MonotonicMs;
      /** The API key that the request carried. */
      readonly key: string;
    }
  /** `isUnsent` is true if the service has certainly not received anything. */
  | { readonly kind: "failed"; readonly error: ApiError; readonly isUnsent: boolean };

/** Maximum wait for a permit. After that the data is due again. */
const PERMIT_WAIT_MS_MAX: DurationMs = 5 * MINUTE_MS;
/**
 * Calls of these lanes fail immediately if earlier 429s or 5xx hold them for longer: an action would delay the round,
 * with the actions and the status of other nodes, and a lookup the end of its walk.
 */
const HELD_MS_MAX: Readonly<Partial<Record<Lane, DurationMs>>> = {
  action: PERMIT_WAIT_MS_MAX,
  lookup: 10 * SECOND_MS,
};

const CANCELED_UNSENT: ApiError = { kind: "aborted", message: "canceled before it was sent" };

/** Waits for a permit and sends a call once. `onSending` is called right before it is sent. */
export async function attemptCall(
  deps: CallAttemptDeps,
  call: Call,
  lane: Lane,
  signal: AbortSignal,
  onSending?: () => void,
): Promise<CallAttempt> {
  const permitted = await waitForPermit(deps, call, lane, signal);
  if (!permitted.ok) return unsent(permitted.error);
  if (!signal.aborted) onSending?.();
  return sendCall(deps, call, permitted.value, signal);
}

/** A permit for a call, and the API key to send with it, which is read before the last check of whether to send it. */
interface PermittedCall {
  readonly permit: Permit;
  readonly key: string;
}

/**
 * Waits for a permit for a call, which must be released: {@link sendCall} does. Fails if there is none within
 * {@link PERMIT_WAIT_MS_MAX}, or immediately if the call is held for longer than {@link HELD_MS_MAX} of its lane.
 */
export async function waitForPermit(
  { clock, rateLimiter, secret }: CallAttemptDeps,
  { endpoint }: Call | ActionCall,
  lane: Lane,
  signal: AbortSignal,
): Promise<Result<PermittedCall, ApiError>> {
  const { category } = ENDPOINTS[endpoint];
  const noPermit = () => fail(noPermitError(rateLimiter.ledger, category, lane, clock.monotonic()));
  if (rateLimiter.heldForMs(category, lane) > (HELD_MS_MAX[lane] ?? Number.POSITIVE_INFINITY)) return noPermit();
  const timeout = startTimeout(clock, PERMIT_WAIT_MS_MAX, signal);
  const permit = await rateLimiter.acquire(category, lane, timeout.signal);
  timeout.stop();
  if (permit !== null) return ok({ permit, key: secret.value() });
  return timeout.expired() ? noPermit() : fail(CANCELED_UNSENT);
}

/** Sends a call that has its permit, unless `signal` has aborted, and releases the permit. */
export async function sendCall(
  deps: CallAttemptDeps,
  call: Call | ActionCall,
  { permit, key }: PermittedCall,
  signal: AbortSignal,
): Promise<CallAttempt> {
  const { clock, rateLimiter, metrics } = deps;
  const { category } = permit;
  const { endpoint } = call;
  if (signal.aborted) {
    rateLimiter.release(permit, { kind: "unused" });
    return unsent(CANCELED_UNSENT);
  }
  const sentAt = clock.monotonic();
  const timeout = startTimeout(clock, deps.timeoutMs, signal);
  const sent = await deps.transport.request(requestOf(call, key, deps.agent), timeout.signal);
  timeout.stop();
  const at = clock.monotonic();
  /** `code` is the status code, or the kind of failure. */
  const recordCall = (code: string) => {
    metrics?.inc("proxywarden_api_requests_total", { endpoint, code });
    metrics?.observe("proxywarden_api_request_duration_seconds", { endpoint }, (at - sentAt) / SECOND_MS);
  };
  if (!sent.ok) {
    const isUnsent = sent.error.kind === "unreachable" || sent.error.unsent === true;
    const sentOutcome = sent.error.kind === "aborted" ? "abandoned" : "lost";
    rateLimiter.release(permit, { kind: isUnsent ? "unused" : sentOutcome });
    const error = failureError(sent.error, timeout.expired(), deps.timeoutMs);
    recordCall(error.kind);
    return { kind: "failed", error, isUnsent };
  }
  const response = sent.value;
  const reading = parseRateLimitHeaders(response.headers, at);
  rateLimiter.release(permit, callOutcomeOf(endpoint, response, reading, clock.now()));
  recordCall(String(response.status));
  if (response.status === 429) metrics?.inc("proxywarden_ratelimit_exceeded_total", { category });
  if (reading !== null) {
    const resetAt = resetEpochSeconds(response.headers) ?? Number.NaN;
    metrics?.set("proxywarden_ratelimit_limit", { category }, reading.limit);
    metrics?.set("proxywarden_ratelimit_remaining", { category }, reading.remaining);
    metrics?.set("proxywarden_ratelimit_reset_timestamp_seconds", { category }, resetAt);
  }
  // An error without the service's headers may come from a gateway, which has a clock of its own.
  const date = reading === null && response.status >= 300 ? null : serviceDate(response.headers);
  const observedAt = date === null ? sentAt : deps.serviceClock.recordDate(date, sentAt, at);
  return { kind: "answered", response, observedAt, receivedAt: at, key };
}

const unsent = (error: ApiError): CallAttempt => ({ kind: "failed", error, isUnsent: true });

function requestOf(call: Call | ActionCall, key: string, agent: string): TransportRequest {
  const { method } = ENDPOINTS[call.endpoint];
  const headers = { authorization: `Bearer ${key}`, accept: "application/json", "user-agent": agent };
  const body = "body" in call ? call.body : null;
  if (body === null) return { method, path: call.path, headers };
  return { method, path: call.path, headers: { ...headers, "content-type": "application/json" }, body };
}

function noPermitError(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): ApiError {
  const { at, waitReason } = availabilityOf(ledger, category, lane, now);
  const isLong = Number.isFinite(at) && at - now >= MINUTE_MS;
  const period = isLong
    ? `for another ${formatSecondsLeft(at - now)}`
    : `within ${PERMIT_WAIT_MS_MAX / MINUTE_MS} minutes`;
  if (waitReason !== "rate_limited")
    return { kind: "budget", message: `the rate limits leave no room for the call ${period}` };
  const advice = isLong ? "; a reload that changes `limits` ends the wait earlier" : "";
  return {
    kind: "rate_limited",
    message: `the service answered earlier calls with 429, or with 5xx and Retry-After, and allows no call ${period}${advice}`,
  };
}

/** A 5xx from these may concern only the node, so it does not delay other calls. */
const SINGLE_NODE_ENDPOINTS: ReadonlySet<EndpointLabel> = new Set([
  "node",
  "node_quarantine",
  "node_reboot",
  "node_disconnect",
]);

function callOutcomeOf(
  endpoint: EndpointLabel,
  response: TransportResponse,
  reading: LimitReading | null,
  now: EpochMs,
): CallOutcome {
  // Without a valid key the call does not count under our limits.
  if (response.status === 401) return { kind: "answered", reading: null };
  const retryAfterMs = retryAfterOf(response, now);
  if (response.status === 429) return { kind: "rate_limited", reading, retryAfterMs };
  const isOverload = response.status >= 500 && !SINGLE_NODE_ENDPOINTS.has(endpoint);
  return { kind: "answered", reading, retryAfterMs: isOverload ? retryAfterMs : null };
}

function failureError(failure: TransportFailure, isTimeout: boolean, timeoutMs: DurationMs): ApiError {
  if (failure.kind !== "aborted") return { kind: failure.kind, message: failure.message };
  if (isTimeout) {
    const missing = failure.unsent ? "no connection" : "no complete response";
    return { kind: "timeout", message: `${missing} within ${timeoutMs / SECOND_MS} s` };
  }
  return failure.unsent ? CANCELED_UNSENT : { kind: "aborted", message: "canceled while it was in flight" };
}
