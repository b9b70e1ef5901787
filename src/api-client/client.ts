import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { CallOutcome } from "../rate-limit/ledger.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import { type Hold, opening } from "../rate-limit/availability.ts";
import type { Reading } from "../rate-limit/limit-headers.ts";
import type { EndpointLabel } from "../metrics/label-values.ts";
import type { Clock, Secret, ServiceRequest, ServiceResponse, Transport, TransportFailure } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { readJson } from "./json-body.ts";
import { type ActionCall, type Call, ENDPOINTS } from "./endpoints.ts";
import { excerpt, type ServiceError } from "./errors.ts";
import type { PermitOffice } from "./rate-limiter.ts";
import { type PostResult, postResultOf } from "./post-result.ts";
import { rateLimitReading, resetEpochSeconds, retryAfter, serviceDate } from "./rate-limit-headers.ts";
import { createServiceClock, type ServiceClock } from "./service-clock.ts";
import { timeLimit } from "./timeout.ts";

/** An answer of the service, read as JSON, and when it was observed. */
export interface Answer {
  readonly json: unknown;
  readonly at: MonotonicMs;
}

/** Reads the service, and acts through it, within the budget. */
export interface ServiceClient {
  /**
   * One GET, in its lane, with at most {@link RETRIES_MAX} further tries where a try could help. `onSending` is called
   * before each try, once there is leave to send it.
   */
  get(call: Call, lane: Lane, signal: AbortSignal, onSending?: () => void): Promise<Result<Answer, ServiceError>>;
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

/** What the client tells of each call. */
export interface CallObserver {
  /** `code`: the status code, or the kind of failure. */
  called(endpoint: EndpointLabel, code: string, tookMs: DurationMs): void;
  /** Rate limit as an answer stated it. */
  stated(category: Category, limit: number, remaining: number, resetEpochSeconds: number | null): void;
  refused(category: Category): void;
}

/** What a client stands on. */
export interface ClientParts {
  readonly transport: Transport;
  readonly office: PermitOffice;
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

type Answered = Extract<Attempt, { kind: "answered" }>;

/** Further tries of a GET after a 5xx, a reset or a time-out. */
export const RETRIES_MAX = 2;
/** The first wait between two tries; the second is twice as long. Each is spread over half to one and a half of it. */
const RETRY_DELAY_MS: DurationMs = 500;
/** A GET is not tried again where the answer asks for a longer wait: the next run of its collector comes soon enough. */
const RETRY_AFTER_MS_MAX: DurationMs = 10 * SECOND_MS;

/** A call that the budget leaves no room for is given up after this: what it was to bring is due again by then. */
const PERMIT_WAIT_MS_MAX: DurationMs = 5 * MINUTE_MS;

type Attempt =
  | { readonly kind: "answered"; readonly response: ServiceResponse; readonly at: MonotonicMs; readonly key: string }
  /** `isUnsent`: surely nothing of it reached the service. */
  | { readonly kind: "failed"; readonly error: ServiceError; readonly isUnsent: boolean };

/** A client that has made no call yet. */
export function createClient(parts: ClientParts): ServiceClient {
  const { clock, office } = parts;
  const { serviceClock = createServiceClock() } = parts;

  async function attempt(
    call: Call | ActionCall,
    lane: Lane,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Attempt> {
    const { category, method } = ENDPOINTS[call.endpoint];
    const wait = timeLimit(clock, PERMIT_WAIT_MS_MAX, signal);
    const permit = await office.request(category, lane, wait.signal);
    wait.stop();
    if (permit === null) {
      const { hold } = opening(office.ledger, category, lane, clock.monotonic());
      return unsent(wait.expired() ? noPermit(hold) : { kind: "aborted", message: UNSENT });
    }
    const key = parts.secret.value();
    const request = requestOf(call, method, key, parts.agent);
    const stopped = stopBefore(signal, onSending);
    if (stopped !== null) {
      office.giveBack(permit, { kind: "unused" });
      return unsent({ kind: "aborted", message: stopped });
    }
    const sentAt = clock.monotonic();
    const limit = timeLimit(clock, parts.timeoutMs, signal);
    const sent = await parts.transport.request(request, limit.signal);
    limit.stop();
    const at = clock.monotonic();
    if (!sent.ok) {
      office.giveBack(permit, { kind: "lost" });
      const error = failureError(sent.error, limit.expired(), parts.timeoutMs);
      parts.observer.called(call.endpoint, error.kind, at - sentAt);
      return { kind: "failed", error, isUnsent: sent.error.kind === "unreachable" || sent.error.unsent === true };
    }
    const reading = rateLimitReading(sent.value.headers, at);
    office.giveBack(permit, outcomeOf(call.endpoint, sent.value, reading, clock.now()));
    observe(call.endpoint, sent.value, reading, sentAt, at);
    return { kind: "answered", response: sent.value, at, key };
  }

  function observe(
    endpoint: EndpointLabel,
    response: ServiceResponse,
    reading: Reading | null,
    sentAt: MonotonicMs,
    at: MonotonicMs,
  ): void {
    const { category } = ENDPOINTS[endpoint];
    parts.observer.called(endpoint, String(response.status), at - sentAt);
    if (response.status === 429) parts.observer.refused(category);
    if (reading !== null) {
      parts.observer.stated(category, reading.limit, reading.remaining, resetEpochSeconds(response.headers));
    }
    const date = serviceDate(response.headers);
    if (date !== null) serviceClock.learn(date, sentAt, at);
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
      // Whoever decides anew finds a renewed key in force.
      const read = parts.secret.refresh();
      return read.ok ? result : { ...result, message: `${result.message}; ${read.error}` };
    },
    async get(call, lane, signal, onSending) {
      for (let tries = 0; ; tries++) {
        const tried = await attempt(call, lane, signal, onSending);
        const error = tried.kind === "failed" ? tried.error : statusError(call, tried.response, clock.now());
        if (error === null) return parse(tried as Answered);
        const asked = tried.kind === "failed" ? null : retryAfter(tried.response.headers, clock.now());
        const final = tries >= RETRIES_MAX || signal.aborted || (asked ?? 0) > RETRY_AFTER_MS_MAX;
        if (error.kind === "unauthorized") {
          // The key's file may have been renewed a moment ago, also while this call was under way.
          const read = parts.secret.refresh();
          const isRenewed = parts.secret.value() !== (tried as Answered).key;
          if (final || !isRenewed)
            return fail(read.ok ? error : { ...error, message: `${error.message}; ${read.error}` });
        } else if (final || !passing.has(error.kind)) return fail(error);
        await clock.sleep(RETRY_DELAY_MS * 2 ** tries * (0.5 + parts.random()), signal);
      }
    },
  };
}

const unsent = (error: ServiceError): Attempt => ({ kind: "failed", error, isUnsent: true });

function requestOf(call: Call | ActionCall, method: "GET" | "POST", key: string, agent: string): ServiceRequest {
  const headers = { authorization: `Bearer ${key}`, accept: "application/json", "user-agent": agent };
  const body = "body" in call ? call.body : null;
  if (body === null) return { method, path: call.path, headers };
  return { method, path: call.path, headers: { ...headers, "content-type": "application/json" }, body };
}

/** Why a call with a permit must not go out after all; null: it may, now. */
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

function noPermit(hold: Hold | null): ServiceError {
  const minutes = PERMIT_WAIT_MS_MAX / MINUTE_MS;
  return hold === "refused"
    ? {
        kind: "rate_limited",
        message: `the service refused earlier calls; the next one may not go within ${minutes} minutes`,
      }
    : { kind: "budget", message: `the limits left no room for the call within ${minutes} minutes` };
}

function outcomeOf(
  endpoint: EndpointLabel,
  response: ServiceResponse,
  reading: Reading | null,
  now: EpochMs,
): CallOutcome {
  // Without a valid key it was counted under none of ours, whatever limit it states.
  if (response.status === 401) return { kind: "answered", reading: null };
  const retryAfterMs = retryAfter(response.headers, now);
  if (response.status === 429) return { kind: "refused", reading, retryAfterMs };
  // A 5xx for one node may be that node's own: it holds no other call. Where many nodes fail, their reads slow down.
  const holds = response.status >= 500 && endpoint !== "node";
  return { kind: "answered", reading, retryAfterMs: holds ? retryAfterMs : null };
}

function failureError(failure: TransportFailure, expired: boolean, timeoutMs: DurationMs): ServiceError {
  if (failure.kind !== "aborted") return { kind: failure.kind, message: failure.message };
  if (expired) {
    const missing = failure.unsent ? "no connection" : "no whole answer";
    return { kind: "timeout", message: `${missing} within ${timeoutMs / SECOND_MS} s` };
  }
  return { kind: "aborted", message: failure.unsent ? UNSENT : "given up while it was under way" };
}

/** The error that a status code means; null for 2xx. Bodies of errors are not shown in the spec: only a start is quoted. */
function statusError(call: Call, response: ServiceResponse, now: EpochMs): ServiceError | null {
  const { status } = response;
  if (status >= 200 && status < 300) return null;
  const said = `${call.path} answered ${status}`;
  const wait = retryAfter(response.headers, now);
  const asked = wait === null ? "" : `: wait ${wait / SECOND_MS} s`;
  const body = excerpt(Buffer.from(response.body.subarray(0, 400)).toString("utf8"));
  switch (true) {
    case status === 401:
      return { kind: "unauthorized", message: `${said}: the API key is not accepted` };
    case status === 403:
      return {
        kind: "forbidden",
        message: `${said}: the API key seems to lack the scope ${ENDPOINTS[call.endpoint].scope}; it said ${body}`,
      };
    case status === 404:
      return { kind: "not_found", message: said };
    case status === 429:
      return { kind: "rate_limited", message: `${said}${asked}` };
    case status >= 300 && status < 400: {
      const target = excerpt(response.headers.location ?? "");
      return {
        kind: "redirected",
        message: `${said}, to ${target}: redirects are not followed; set service.base_url to the final address`,
      };
    }
    case status >= 500:
      return { kind: "server_error", message: `${said}${asked}: ${body}` };
    default:
      return { kind: "client_error", message: `${said}: ${body}` };
  }
}

/** Failures that another try may overcome. Where no connection comes about, the next run is soon enough. */
const passing: ReadonlySet<ServiceError["kind"]> = new Set(["server_error", "reset", "timeout"]);

function parse({ response, at }: Answered): Result<Answer, ServiceError> {
  const json = readJson(response);
  return json.ok ? ok({ json: json.value, at }) : fail({ kind: "not_json", message: json.error });
}
