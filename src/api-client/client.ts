import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { errorMessage, fail, ok, type Result } from "../base/result.ts";
import type { EndpointLabel } from "../model/label-values.ts";
import type { Secret, TransportResponse } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { nextTurn } from "../platform/event-loop.ts";
import type { Lane } from "../rate-limit/limits.ts";
import { attemptCall, type CallAttempt, type CallAttemptDeps, sendCall, waitForPermit } from "./call-attempt.ts";
import type { ActionCall, Call } from "./endpoints.ts";
import { type ApiError, excerpt } from "./errors.ts";
import { readJson } from "./json-body.ts";
import { apiKeyProblem, type PostResult, postResultOf, quoteBody } from "./post-result.ts";
import { retryAfterOf } from "./rate-limit-headers.ts";
import type { ServiceClock } from "./service-clock.ts";

/** A JSON response from the service. */
interface ApiResponse {
  readonly json: unknown;
  /**
   * When its content was observed, at the earliest: when it was requested, since the response may have been delayed.
   * `serviceTime` converts it to the clock by which the response was written.
   */
  readonly at: MonotonicMs;
  /** When it had arrived. Large responses wait for their turn to be parsed. */
  readonly receivedAt: MonotonicMs;
}

/** Client of the management API. All calls go through the rate limiter. */
export interface ApiClient {
  /**
   * Sends a GET, and retries it up to {@link RETRIES_MAX} times if that may help. Once the retries of a call have failed,
   * calls of its endpoint are not retried until one succeeds, since an outage would use up three times the planned calls.
   * `onSending` is called before each attempt, once it has a permit.
   */
  get(call: Call, lane: Lane, signal: AbortSignal, onSending?: () => void): Promise<Result<ApiResponse, ApiError>>;
  /**
   * Waits for a permit in the lane `action`, as {@link waitForPermit} does; without one the result is `not_sent`, or
   * `canceled` if `signal` has aborted. Then `whenPermitted` either calls `send` once, which sends the POST in the same
   * turn of the event loop, or returns why it is not sent. Never sends it again. Never rejects.
   */
  post<T = never>(
    call: ActionCall,
    signal: AbortSignal,
    whenPermitted: (send: (signal: AbortSignal) => Promise<PostResult>) => Promise<PostResult | T>,
  ): Promise<PostResult | T>;
  /** The service's clock at `at`, by its Date headers, or null if unknown: see {@link ServiceClock}. */
  serviceTime(at: MonotonicMs): EpochMs | null;
  /**
   * When responses last agreed on the service's clock, or null if no two have. Until then a single wrong Date may have
   * set it.
   */
  serviceTimeAgreedAt(): MonotonicMs | null;
  /** How far the service's clock is ahead of our wall clock, or null before the first Date header. */
  clockSkewMs(): DurationMs | null;
}

/** Dependencies of the API client. */
interface ApiClientDeps extends CallAttemptDeps {
  readonly random: Random;
}

/** Maximum number of retries of a GET after a 5xx, a reset or a timeout, or after a 401 if the API key has changed. */
const RETRIES_MAX = 2;
/** Wait before the first retry, doubled for the second. Each is multiplied by a random factor of 0.5 to 1.5. */
const RETRY_DELAY_MS: DurationMs = 500;
/** Longest Retry-After after which a GET is retried. After a longer wait the next run of its collector is due. */
const RETRY_WAIT_MS_MAX: DurationMs = 10 * SECOND_MS;
/** Failures that are retried. If no connection can be made, the next run is soon enough. */
const TRANSIENT_ERRORS: ReadonlySet<ApiError["kind"]> = new Set(["server_error", "reset", "timeout"]);

/** A larger body takes milliseconds to parse and process, which happens in a turn of the event loop of its own. */
const LARGE_BODY_BYTES = 65_536;

/** Creates the API client. */
export function createApiClient(deps: ApiClientDeps): ApiClient {
  const { clock, random, secret, serviceClock } = deps;
  deps.rateLimiter.followServiceClock(serviceClock);
  /** Endpoints of which the last call failed, with its retries. */
  const failing = new Set<EndpointLabel>();

  function resultOf(call: ActionCall, attempt: CallAttempt): PostResult {
    if (attempt.kind === "failed") {
      return attempt.isUnsent ? notPosted(attempt.error) : { kind: "in_doubt", message: attempt.error.message };
    }
    const result = postResultOf(call, attempt.response, clock.now());
    const isUnauthorized = result.kind === "credentials" && result.status === 401;
    return isUnauthorized ? { ...result, message: refreshKey(secret, result.message) } : result;
  }

  return {
    serviceTime: (at) => serviceClock.timeAt(at),
    serviceTimeAgreedAt: () => serviceClock.agreedAt(),
    clockSkewMs() {
      const serviceNow = serviceClock.timeAt(clock.monotonic());
      return serviceNow === null ? null : serviceNow - clock.now();
    },
    async post(call, signal, whenPermitted) {
      const permitted = await waitForPermit(deps, call, "action", signal);
      if (!permitted.ok) return notPosted(permitted.error);
      let isSent = false;
      try {
        if (signal.aborted) return { kind: "canceled" };
        return await whenPermitted(async (sendSignal) => {
          isSent = true;
          return resultOf(call, await sendCall(deps, call, permitted.value, sendSignal));
        });
      } catch (error) {
        return { kind: isSent ? "in_doubt" : "not_sent", message: errorMessage(error) };
      } finally {
        if (!isSent) deps.rateLimiter.release(permitted.value.permit, { kind: "unused" });
      }
    },
    async get(call, lane, signal, onSending) {
      for (let retries = 0; ; retries++) {
        let retryAfterMs: DurationMs = 0;
        const attempt = await attemptCall(deps, call, lane, signal, onSending);
        const isLast = retries >= RETRIES_MAX || signal.aborted;
        const mayRetry = ({ kind }: ApiError) => !isLast && TRANSIENT_ERRORS.has(kind) && !failing.has(call.endpoint);
        const failed = (error: ApiError) => {
          if (TRANSIENT_ERRORS.has(error.kind)) failing.add(call.endpoint);
          return fail(error);
        };
        if (attempt.kind === "failed") {
          if (!mayRetry(attempt.error)) return failed(attempt.error);
        } else {
          const { response, key } = attempt;
          const error = statusError(call, response, clock.now());
          if (error === null) {
            failing.delete(call.endpoint);
            if (response.body.byteLength > LARGE_BODY_BYTES) await nextTurn();
            return parseResponse(attempt);
          }
          retryAfterMs = retryAfterOf(response, clock.now()) ?? 0;
          const isTooLong = retryAfterMs > RETRY_WAIT_MS_MAX;
          if (error.kind === "unauthorized") {
            const message = refreshKey(secret, error.message);
            if (isLast || isTooLong || secret.value() === key) return fail({ ...error, message });
          } else if (isTooLong || !mayRetry(error)) return failed(error);
        }
        await clock.sleep(Math.max(retryAfterMs, RETRY_DELAY_MS * 2 ** retries * (0.5 + random())), signal);
      }
    },
  };
}

/** Reads the key again, since it may have been renewed. Returns `message`, and why the key can't be read if it can't. */
function refreshKey(secret: Secret, message: string): string {
  const read = secret.refresh();
  return read.ok ? message : `${message}; ${read.error}`;
}

const notPosted = ({ kind, message }: ApiError): PostResult =>
  kind === "aborted" ? { kind: "canceled" } : { kind: "not_sent", message };

/** Returns the error for a status code, or null for 2xx. */
function statusError(call: Call, response: TransportResponse, now: EpochMs): ApiError | null {
  const { status, headers } = response;
  if (status >= 200 && status < 300) return null;
  const message = `${call.path} answered ${status}`;
  const retryAfterMs = retryAfterOf(response, now);
  const wait = retryAfterMs === null ? "" : `: wait ${retryAfterMs / SECOND_MS} s`;
  const body = quoteBody(response);
  switch (true) {
    case status === 401 || status === 403: {
      const kind = status === 401 ? "unauthorized" : "forbidden";
      return { kind, message: `${message}: ${apiKeyProblem(call, response)}` };
    }
    case status === 404 || status === 410:
      return { kind: "not_found", message };
    case status === 429:
      return { kind: "rate_limited", message: `${message}${wait}` };
    case status >= 300 && status < 400: {
      const advice = "redirects are not followed; set service.base_url to the final address";
      return { kind: "redirected", message: `${message}, to ${excerpt(headers.location ?? "")}: ${advice}` };
    }
    case status >= 500:
      return { kind: "server_error", message: `${message}${wait}: ${body}` };
    default:
      return { kind: "client_error", message: `${message}: ${body}` };
  }
}

function parseResponse(attempt: Extract<CallAttempt, { kind: "answered" }>): Result<ApiResponse, ApiError> {
  const { response, observedAt: at, receivedAt } = attempt;
  const json = readJson(response);
  freeBody(response);
  return json.ok ? ok({ json: json.value, at, receivedAt }) : fail({ kind: "not_json", message: json.error });
}

const EMPTY_BODY = new Uint8Array();
/** Small decompressed bodies may share a buffer of up to this size, which is the pool of Node.js. */
const SHARED_BUFFER_BYTES_MAX = 65_536;

/**
 * Frees the memory of a parsed body. Otherwise, only a major collection frees what has become old, such as the promises
 * of a slow call, and V8 counts buffers as part of the heap: a walk of a large list would cause one every few seconds.
 */
function freeBody(response: TransportResponse): void {
  const { buffer } = response.body;
  if (buffer instanceof ArrayBuffer && buffer.byteLength > SHARED_BUFFER_BYTES_MAX) buffer.transfer(0);
  response.body = EMPTY_BODY;
}
