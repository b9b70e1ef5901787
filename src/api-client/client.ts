import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
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
import { availabilityOf, type WaitReason } from "../rate-limit/availability.ts";
import type { CallOutcome } from "../rate-limit/ledger.ts";
import type { LimitReading } from "../rate-limit/limit-headers.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import { type ActionCall, type Call, ENDPOINTS } from "./endpoints.ts";
import { type ApiError, excerpt } from "./errors.ts";
import { readJson } from "./json-body.ts";
import { type PostResult, postResultOf } from "./post-result.ts";
import { parseRateLimitHeaders, parseRetryAfter, resetEpochSeconds, serviceDate } from "./rate-limit-headers.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import { createServiceClock, type ServiceClock } from "./service-clock.ts";
import { startTimeout } from "./timeout.ts";

/** A JSON response of the service, and when it was received. */
export interface ApiResponse {
  readonly json: unknown;
  readonly at: MonotonicMs;
}

/** Client of the management API. All calls pass the rate limiter. */
export interface ApiClient {
  /**
   * One GET, in its lane, with at most {@link RETRIES_MAX} further tries where a try could help. `onSending` is called
   * before each try, once there is leave to send it.
   */
  get(call: Call, lane: Lane, signal: AbortSignal, onSending?: () => void): Promise<Result<ApiResponse, ApiError>>;
  /**
   * One POST in the lane `action`: a single try, whatever becomes of it. `onSending` is called once there is leave to
   * send it, right before it is sent: what it throws keeps it from being sent. Never rejects.
   */
  post(call: ActionCall, signal: AbortSignal, onSending?: () => void): Promise<PostResult>;
  /** What the service's clock showed, or shows, at `at`, by its Date headers; null before the first. */
  serviceTime(at: MonotonicMs): EpochMs | null;
  /** How far the service's clock is ahead of our wall clock; null before the first Date. */
  clockSkewMs(): DurationMs | null;
}

/** Receives the result of each call. */
export interface CallObserver {
  /** `code`: the status code, or the kind of failure. */
  onCall(endpoint: EndpointLabel, code: string, tookMs: DurationMs): void;
  /** Rate limit as an answer stated it. */
  onLimitStated(category: Category, limit: number, remaining: number, resetEpochSeconds: number | null): void;
  onRejected(category: Category): void;
}

/** Dependencies of the API client. */
export interface ApiClientDeps {
  readonly transport: Transport;
  readonly rateLimiter: RateLimiter;
  readonly clock: Clock;
  readonly random: Random;
  readonly secret: Secret;
  readonly timeoutMs: DurationMs;
  readonly observer: CallObserver;
  /** Sent as User-Agent. */
  readonly agent: string;
  /** What was learned of the service's clock before; absent: nothing. */
  readonly serviceClock?: ServiceClock;
}

type CallResult = Extract<Attempt, { kind: "answered" }>;

/** Retries of a GET after a 5xx, a reset or a time-out. */
export const RETRIES_MAX = 2;
/** The first wait between two tries; the second is twice as long. Each is spread over half to one and a half of it. */
const RETRY_DELAY_MS: DurationMs = 500;
/** A GET is not tried again where the answer asks for a longer wait: the next run of its collector comes soon enough. */
const RETRY_AFTER_MS_MAX: DurationMs = 10 * SECOND_MS;

/** Maximum wait for a permit: by then the data of the call is due again. */
const PERMIT_WAIT_MS_MAX: DurationMs = 5 * MINUTE_MS;

type Attempt =
  | { readonly kind: "answered"; readonly response: TransportResponse; readonly at: MonotonicMs; readonly key: string }
  /** `isUnsent`: surely nothing of it reached the service. */
  | { readonly kind: "failed"; readonly error: ApiError; readonly isUnsent: boolean };

/** Creates the API client. */
export function createApiClient(parts: ApiClientDeps): ApiClient {
  const { clock, rateLimiter } = parts;
  const { serviceClock = createServiceClock() } = parts;

  async function attempt(
    call: Call | ActionCall,
    lane: Lane,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Attempt> {
    const { category, method } = ENDPOINTS[call.endpoint];
    const wait = startTimeout(clock, PERMIT_WAIT_MS_MAX, signal);
    const permit = await rateLimiter.acquire(category, lane, wait.signal);
    wait.stop();
    if (permit === null) {
      const { waitReason: hold } = availabilityOf(rateLimiter.ledger, category, lane, clock.monotonic());
      return unsentResult(wait.expired() ? noPermitError(hold) : { kind: "aborted", message: UNSENT });
    }
    const key = parts.secret.value();
    const request = requestOf(call, method, key, parts.agent);
    const stopped = stopBefore(signal, onSending);
    if (stopped !== null) {
      rateLimiter.release(permit, { kind: "unused" });
      return unsentResult({ kind: "aborted", message: stopped });
    }
    const sentAt = clock.monotonic();
    const limit = startTimeout(clock, parts.timeoutMs, signal);
    const sent = await parts.transport.request(request, limit.signal);
    limit.stop();
    const at = clock.monotonic();
    if (!sent.ok) {
      rateLimiter.release(permit, { kind: "lost" });
      const error = failureError(sent.error, limit.expired(), parts.timeoutMs);
      parts.observer.onCall(call.endpoint, error.kind, at - sentAt);
      return { kind: "failed", error, isUnsent: sent.error.kind === "unreachable" || sent.error.unsent === true };
    }
    const reading = parseRateLimitHeaders(sent.value.headers, at);
    rateLimiter.release(permit, callOutcomeOf(call.endpoint, sent.value, reading, clock.now()));
    observe(call.endpoint, sent.value, reading, sentAt, at);
    return { kind: "answered", response: sent.value, at, key };
  }

  function observe(
    endpoint: EndpointLabel,
    response: TransportResponse,
    reading: LimitReading | null,
    sentAt: MonotonicMs,
    at: MonotonicMs,
  ): void {
    const { category } = ENDPOINTS[endpoint];
    parts.observer.onCall(endpoint, String(response.status), at - sentAt);
    if (response.status === 429) parts.observer.onRejected(category);
    if (reading !== null) {
      parts.observer.onLimitStated(category, reading.limit, reading.remaining, resetEpochSeconds(response.headers));
    }
    const date = serviceDate(response.headers);
    if (date !== null) serviceClock.recordDate(date, sentAt, at);
  }

  return {
    serviceTime: serviceClock.timeAt,
    clockSkewMs() {
      const serviceNow = serviceClock.timeAt(clock.monotonic());
      return serviceNow === null ? null : serviceNow - clock.now();
    },
    async post(call, signal, onSending) {
      const tried = await attempt(call, "action", signal, onSending);
      if (tried.kind === "failed") {
        return { kind: tried.isUnsent ? "not_sent" : "in_doubt", message: tried.error.message };
      }
      const result = postResultOf(call, tried.response, tried.at, clock.now());
      if (result.kind !== "credentials" || result.status !== 401) return result;
      // The next decision uses a renewed key.
      const read = parts.secret.refresh();
      return read.ok ? result : { ...result, message: `${result.message}; ${read.error}` };
    },
    async get(call, lane, signal, onSending) {
      for (let tries = 0; ; tries++) {
        const tried = await attempt(call, lane, signal, onSending);
        const error = tried.kind === "failed" ? tried.error : statusError(call, tried.response, clock.now());
        if (error === null) return parseAnswer(tried as CallResult);
        const asked = tried.kind === "failed" ? null : parseRetryAfter(tried.response.headers, clock.now());
        const final = tries >= RETRIES_MAX || signal.aborted || (asked ?? 0) > RETRY_AFTER_MS_MAX;
        if (error.kind === "unauthorized") {
          // The key's file may have been renewed a moment ago, also while this call was under way.
          const read = parts.secret.refresh();
          const isRenewed = parts.secret.value() !== (tried as CallResult).key;
          if (final || !isRenewed)
            return fail(read.ok ? error : { ...error, message: `${error.message}; ${read.error}` });
        } else if (final || !isTransient.has(error.kind)) return fail(error);
        await clock.sleep(RETRY_DELAY_MS * 2 ** tries * (0.5 + parts.random()), signal);
      }
    },
  };
}

const unsentResult = (error: ApiError): Attempt => ({ kind: "failed", error, isUnsent: true });

function requestOf(call: Call | ActionCall, method: "GET" | "POST", key: string, agent: string): TransportRequest {
  const headers = { authorization: `Bearer ${key}`, accept: "application/json", "user-agent": agent };
  const body = "body" in call ? call.body : null;
  if (body === null) return { method, path: call.path, headers };
  return { method, path: call.path, headers: { ...headers, "content-type": "application/json" }, body };
}

/** Why a call with a permit must not be sent; null: it may be sent. */
function stopBefore(signal: AbortSignal, onSending?: () => void): string | null {
  if (signal.aborted) return UNSENT;
  try {
    onSending?.();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return signal.aborted ? UNSENT : null;
}

const UNSENT = "given up before it was sent";

function noPermitError(hold: WaitReason | null): ApiError {
  const minutes = PERMIT_WAIT_MS_MAX / MINUTE_MS;
  return hold === "refused"
    ? {
        kind: "rate_limited",
        message: `the service refused earlier calls; the next one may not go within ${minutes} minutes`,
      }
    : { kind: "budget", message: `the limits left no room for the call within ${minutes} minutes` };
}

function callOutcomeOf(
  endpoint: EndpointLabel,
  response: TransportResponse,
  reading: LimitReading | null,
  now: EpochMs,
): CallOutcome {
  // Without a valid key the call is not counted under our limits.
  if (response.status === 401) return { kind: "answered", reading: null };
  const retryAfterMs = parseRetryAfter(response.headers, now);
  if (response.status === 429) return { kind: "refused", reading, retryAfterMs };
  // A 5xx for one node may concern that node alone, and delays no other call.
  const holds = response.status >= 500 && endpoint !== "node";
  return { kind: "answered", reading, retryAfterMs: holds ? retryAfterMs : null };
}

function failureError(failure: TransportFailure, expired: boolean, timeoutMs: DurationMs): ApiError {
  if (failure.kind !== "aborted") return { kind: failure.kind, message: failure.message };
  if (expired) {
    const missing = failure.unsent ? "no connection" : "no whole answer";
    return { kind: "timeout", message: `${missing} within ${timeoutMs / SECOND_MS} s` };
  }
  return { kind: "aborted", message: failure.unsent ? UNSENT : "given up while it was under way" };
}

/** The error that a status code means; null for 2xx. Bodies of errors are not shown in the spec: only a start is quoted. */
function statusError(call: Call, response: TransportResponse, now: EpochMs): ApiError | null {
  const { status } = response;
  if (status >= 200 && status < 300) return null;
  const message = `${call.path} answered ${status}`;
  const wait = parseRetryAfter(response.headers, now);
  const asked = wait === null ? "" : `: wait ${wait / SECOND_MS} s`;
  const body = excerpt(Buffer.from(response.body.subarray(0, 400)).toString("utf8"));
  switch (true) {
    case status === 401:
      return { kind: "unauthorized", message: `${message}: the API key is not accepted` };
    case status === 403:
      return {
        kind: "forbidden",
        message: `${message}: the API key seems to lack the scope ${ENDPOINTS[call.endpoint].scope}; it said ${body}`,
      };
    case status === 404:
      return { kind: "not_found", message: message };
    case status === 429:
      return { kind: "rate_limited", message: `${message}${asked}` };
    case status >= 300 && status < 400: {
      const target = excerpt(response.headers.location ?? "");
      return {
        kind: "redirected",
        message: `${message}, to ${target}: redirects are not followed; set service.base_url to the final address`,
      };
    }
    case status >= 500:
      return { kind: "server_error", message: `${message}${asked}: ${body}` };
    default:
      return { kind: "client_error", message: `${message}: ${body}` };
  }
}

/** Failures worth a retry. If no connection can be made, the next run is soon enough. */
const isTransient: ReadonlySet<ApiError["kind"]> = new Set(["server_error", "reset", "timeout"]);

function parseAnswer({ response, at }: CallResult): Result<ApiResponse, ApiError> {
  const json = readJson(response);
  return json.ok ? ok({ json: json.value, at }) : fail({ kind: "not_json", message: json.error });
}
