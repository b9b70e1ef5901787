import type { FaultKind, ServiceOptions } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { EndpointError, EndpointResult } from "../api/endpoint-context.ts";
import type { Verdict } from "./limiter.ts";
import type { DeliveryFault, Reply } from "./reply.ts";

const JSON_TYPE = "application/json";

/** Converts the result of an endpoint to a reply. */
export function resultReply(options: ServiceOptions, result: EndpointResult): Reply {
  if (!result.ok) return errorReply(options, result.error);
  const { status, value } = result.value;
  return value === undefined ? { status, headers: {}, body: "" } : jsonReply(status, value);
}

/** Returns an error reply. The spec does not show its body (section 7.2), so an option chooses its form. */
export function errorReply(options: ServiceOptions, { status, code, message }: EndpointError): Reply {
  switch (options.errorBody) {
    case "code":
      return jsonReply(status, { error: code, message });
    case "nested":
      return jsonReply(status, { error: { code, message } });
    case "text":
      return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body: message };
    case "empty":
      return { status, headers: {}, body: "" };
    default:
      return options.errorBody satisfies never;
  }
}

/**
 * Returns a 429 (spec, section 7.1). `seconds` is `retry_after` in the body, and `retryAfter` is the Retry-After header,
 * which may be an HTTP-date. Null leaves either out.
 */
export function rateLimitedReply(seconds: number | null, retryAfter: string | null): Reply {
  const reply = jsonReply(429, {
    error: "rate_limit_exceeded",
    message: `Rate limit exceeded. Try again in ${seconds ?? 1} seconds.`,
    ...(seconds === null ? {} : { retry_after: seconds }),
  });
  return withRetryAfter(reply, retryAfter);
}

/** Returns the rate limit headers (section 8.1). The reset is on the service's clock, rounded up to seconds. */
export const limitHeaders = (
  { rateLimitReset }: ServiceOptions,
  verdict: Verdict,
  skewMs: number,
): Record<string, string> => ({
  "x-ratelimit-limit": String(verdict.limit),
  "x-ratelimit-remaining": String(Math.max(0, Math.floor(verdict.remaining))),
  "x-ratelimit-reset": `${Math.ceil((verdict.resetEpochMs + skewMs) / 1_000)}${rateLimitReset === "seconds" ? "" : "000"}`,
});

/** Returns the rate limit headers that faults set instead of the correct ones. */
export function falseLimitHeaders(faults: readonly FaultKind[]): Record<string, string> {
  const stated = faults.flatMap((fault) => {
    if (fault.kind !== "limit_headers") return [];
    const { limit, remaining, reset } = fault;
    return Object.entries({ limit, remaining, reset });
  });
  return Object.fromEntries(
    stated.flatMap(([name, value]) => (value === undefined ? [] : [[`x-ratelimit-${name}`, value]])),
  );
}

/** Returns the Date header. */
export const dateHeader = (at: EpochMs): Record<string, string> => ({ date: new Date(at).toUTCString() });

/**
 * Returns the reply of a fault that prevents the execution of a request, or null if the fault does not. `serviceNow` is
 * the skewed time.
 */
export function interceptedReply(fault: FaultKind, serviceNow: EpochMs): Reply | null {
  switch (fault.kind) {
    case "status":
      return fault.executed === true ? null : statusReply(fault, serviceNow);
    case "unsuccessful":
      return jsonReply(200, { success: false, message: "The operation could not be completed" });
    case "hang":
    case "reset":
      return { status: 0, headers: {}, body: "", deliveryFault: fault };
    case "html":
      return { status: 200, headers: { "content-type": "text/html; charset=utf-8" }, body: SIGN_IN_PAGE };
    case "redirect":
      return { status: 302, headers: { location: fault.location }, body: "" };
    default:
      return null;
  }
}

/**
 * Applies a fault to the reply of an executed request. A reply without a body can only be lost or replaced. `serviceNow`
 * is the skewed time.
 */
export function distortReply(fault: FaultKind, reply: Reply, serviceNow: EpochMs): Reply {
  if (fault.kind === "lost_reply") return { ...reply, deliveryFault: { kind: "reset" } };
  if (fault.kind === "status" && fault.executed === true) return statusReply(fault, serviceNow);
  if (reply.body === "") return reply;
  switch (fault.kind) {
    case "truncate":
    case "slow_drip":
    case "huge_body":
      return { ...reply, deliveryFault: fault };
    case "bad_json":
      return { ...reply, body: `${String(reply.body).slice(0, -1)},` };
    case "wrong_shape":
      return jsonReply(reply.status, { data: { items: "none" }, pagination: [] });
    default:
      return reply;
  }
}

/** Returns the label under which a reply is counted, which is its status or the fault that kept it from arriving. */
export const outcomeLabel = ({ status, deliveryFault }: Reply): number | DeliveryFault["kind"] =>
  deliveryFault?.kind === "hang" || deliveryFault?.kind === "reset" || deliveryFault?.kind === "truncate"
    ? deliveryFault.kind
    : status;

/** Returns the 429 of a gateway, without the service's rate limit headers and error body. */
export function gatewayLimitReply(retryAfterSeconds: number | undefined): Reply {
  const body = "<html><head><title>429 Too Many Requests</title></head></html>";
  const reply = { status: 429, headers: { "content-type": "text/html" }, body };
  return withRetryAfter(reply, retryAfterSeconds === undefined ? null : String(retryAfterSeconds));
}

const SIGN_IN_PAGE = "<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>";

function statusReply(fault: Extract<FaultKind, { kind: "status" }>, serviceNow: EpochMs): Reply {
  const { status, retryAfter, retryAfterDateMs } = fault;
  const date = retryAfterDateMs === undefined ? null : new Date(serviceNow + retryAfterDateMs).toUTCString();
  const header = date ?? retryAfter ?? null;
  if (status === 429) return rateLimitedReply(header === null || !/^\d+$/.test(header) ? null : Number(header), header);
  const reply = jsonReply(status, { error: "upstream_error", message: `The service answered with ${status}` });
  return withRetryAfter(reply, header);
}

const withRetryAfter = (reply: Reply, retryAfter: string | null): Reply =>
  retryAfter === null ? reply : { ...reply, headers: { ...reply.headers, "retry-after": retryAfter } };

const jsonReply = (status: number, value: unknown): Reply => ({
  status,
  headers: { "content-type": JSON_TYPE },
  body: JSON.stringify(value),
});
