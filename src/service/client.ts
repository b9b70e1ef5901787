import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { CallOutcome } from "../budget/ledger.ts";
import type { Category, Lane } from "../budget/limits.ts";
import type { Reading } from "../budget/view.ts";
import type { EndpointLabel } from "../metrics/vocabulary.ts";
import type { Clock, Secret, ServiceResponse, Transport, TransportFailure } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { type Call, ENDPOINTS } from "./endpoints.ts";
import { excerpt, type ServiceError } from "./errors.ts";
import type { PermitOffice } from "./permits.ts";
import { rateLimitReading, resetEpochSeconds, retryAfter, serviceDate } from "./ratelimit.ts";
import { createServiceClock } from "./serviceclock.ts";

/** An answer of the service, read as JSON, and when it was observed. */
export interface Answer {
  readonly json: unknown;
  readonly at: MonotonicMs;
}

/** Reads the service within the budget. */
export interface ServiceClient {
  /** One GET, in its lane, with at most {@link RETRIES_MAX} further tries where a try could help. */
  get(call: Call, lane: Lane, signal: AbortSignal): Promise<Result<Answer, ServiceError>>;
  /** How far the service's clock is ahead of ours, by its Date headers; null before the first. */
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
}

type Answered = Extract<Attempt, { kind: "answered" }>;

/** Further tries of a GET after a 5xx, a reset or a time-out. */
export const RETRIES_MAX = 2;
/** The first wait between two tries; the second is twice as long. Each is spread over half to one and a half of it. */
const RETRY_DELAY_MS: DurationMs = 500;

/** A call that the budget leaves no room for is given up after this: what it was to bring is due again by then. */
const PERMIT_WAIT_MS_MAX: DurationMs = 5 * MINUTE_MS;

type Attempt =
  | { readonly kind: "answered"; readonly response: ServiceResponse; readonly at: MonotonicMs; readonly key: string }
  | { readonly kind: "failed"; readonly error: ServiceError };

/** A client that has made no call yet. */
export function createClient(parts: ClientParts): ServiceClient {
  const { clock, office } = parts;
  const serviceClock = createServiceClock();

  async function attempt(call: Call, lane: Lane, signal: AbortSignal): Promise<Attempt> {
    const { category, method } = ENDPOINTS[call.endpoint];
    const wait = timeLimit(clock, PERMIT_WAIT_MS_MAX, signal);
    const permit = await office.request(category, lane, wait.signal);
    wait.stop();
    if (permit === null) return { kind: "failed", error: noPermit(wait.expired()) };
    const sentAt = clock.monotonic();
    const key = parts.secret.value();
    const headers = {
      authorization: `Bearer ${key}`,
      accept: "application/json",
      "user-agent": parts.agent,
    };
    const limit = timeLimit(clock, parts.timeoutMs, signal);
    const sent = await parts.transport.request({ method, path: call.path, headers }, limit.signal);
    limit.stop();
    const at = clock.monotonic();
    if (!sent.ok) {
      office.giveBack(permit, { kind: "lost" });
      const error = failureError(sent.error, limit.expired(), parts.timeoutMs);
      parts.observer.called(call.endpoint, error.kind, at - sentAt);
      return { kind: "failed", error };
    }
    const reading = rateLimitReading(sent.value.headers, at);
    office.giveBack(permit, outcomeOf(sent.value, reading, clock.now()));
    observe(call.endpoint, sent.value, reading, at - sentAt);
    return { kind: "answered", response: sent.value, at, key };
  }

  function observe(
    endpoint: EndpointLabel,
    response: ServiceResponse,
    reading: Reading | null,
    tookMs: DurationMs,
  ): void {
    const { category } = ENDPOINTS[endpoint];
    parts.observer.called(endpoint, String(response.status), tookMs);
    if (response.status === 429) parts.observer.refused(category);
    if (reading !== null) {
      parts.observer.stated(category, reading.limit, reading.remaining, resetEpochSeconds(response.headers));
    }
    const date = serviceDate(response.headers);
    if (date !== null) serviceClock.learn(date, clock.now() - tookMs, clock.now());
  }

  return {
    clockSkewMs: serviceClock.skewMs,
    async get(call, lane, signal) {
      for (let tries = 0; ; tries++) {
        const tried = await attempt(call, lane, signal);
        const error = tried.kind === "failed" ? tried.error : statusError(call, tried.response, clock.now());
        if (error === null) return parse(tried as Answered);
        const final = tries >= RETRIES_MAX || signal.aborted;
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

/** A signal that aborts with the caller's, or after `limitMs` on the clock. `stop` ends the wait. */
function timeLimit(clock: Clock, limitMs: DurationMs, outer: AbortSignal) {
  const limit = new AbortController();
  const stop = new AbortController();
  let expired = false;
  const onOuter = () => limit.abort();
  outer.addEventListener("abort", onOuter, { once: true });
  if (outer.aborted) limit.abort();
  void clock.sleep(limitMs, stop.signal).then(() => {
    if (stop.signal.aborted) return;
    expired = true;
    limit.abort();
  });
  return {
    signal: limit.signal,
    expired: () => expired,
    stop() {
      stop.abort();
      outer.removeEventListener("abort", onOuter);
    },
  };
}

const noPermit = (waited: boolean): ServiceError =>
  waited
    ? {
        kind: "budget",
        message: `the limits left no room for the call within ${PERMIT_WAIT_MS_MAX / MINUTE_MS} minutes`,
      }
    : { kind: "aborted", message: "given up before it was sent" };

function outcomeOf(response: ServiceResponse, reading: Reading | null, now: EpochMs): CallOutcome {
  if (response.status !== 429) return { kind: "answered", reading };
  return { kind: "refused", reading, retryAfterMs: retryAfter(response.headers, now) };
}

function failureError(failure: TransportFailure, expired: boolean, timeoutMs: DurationMs): ServiceError {
  if (failure.kind !== "aborted") return { kind: failure.kind, message: failure.message };
  if (expired) return { kind: "timeout", message: `no whole answer within ${timeoutMs / SECOND_MS} s` };
  return { kind: "aborted", message: "given up while it was under way" };
}

/** The error that a status code means; null for 2xx. Bodies of errors are not shown in the spec: only a start is quoted. */
function statusError(call: Call, response: ServiceResponse, now: EpochMs): ServiceError | null {
  const { status } = response;
  if (status >= 200 && status < 300) return null;
  const said = `${call.path} answered ${status}`;
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
    case status === 429: {
      const wait = retryAfter(response.headers, now);
      return { kind: "rate_limited", message: `${said}${wait === null ? "" : `: wait ${wait / SECOND_MS} s`}` };
    }
    case status >= 300 && status < 400: {
      const target = excerpt(response.headers.location ?? "");
      return {
        kind: "redirected",
        message: `${said}, to ${target}: redirects are not followed; set service.base_url to the final address`,
      };
    }
    case status >= 500:
      return { kind: "server_error", message: `${said}: ${body}` };
    default:
      return { kind: "client_error", message: `${said}: ${body}` };
  }
}

/** Failures that another try may overcome. Where no connection comes about, the next run is soon enough. */
const passing: ReadonlySet<ServiceError["kind"]> = new Set(["server_error", "reset", "timeout"]);

const utf8 = new TextDecoder("utf-8");

function parse({ response, at }: Answered): Result<Answer, ServiceError> {
  const text = utf8.decode(response.body);
  try {
    return ok({ json: JSON.parse(text) as unknown, at });
  } catch {
    const type = response.headers["content-type"] ?? "no content type";
    return fail({ kind: "not_json", message: `expected JSON, got ${type} beginning with ${excerpt(text)}` });
  }
}
