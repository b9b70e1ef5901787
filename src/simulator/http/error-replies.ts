import type { FaultKind, ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { EndpointError, EndpointResult } from "../api/endpoint-context.ts";
import type { Verdict } from "./limiter.ts";
import type { DeliveryFault, Reply } from "./reply.ts";

const JSON_TYPE = "application/json";

/** The reply of an endpoint. */
export function resultReply(options: ServiceOptions, outcome: EndpointResult): Reply {
  if (!outcome.ok) return errorReply(options, outcome.error);
  const { status, value } = outcome.value;
  return value === undefined ? { status, headers: {}, body: "" } : jsonReply(status, value);
}

/** A refusal in the shape that the options choose; the spec shows none (section 7.2). */
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

/** The 429 of the spec, section 7.1. `seconds` and the header may differ: the header may be an HTTP-date, or absent. */
export function rateLimitedReply(seconds: number | null, retryAfter: string | null): Reply {
  const wait = seconds ?? 1;
  const reply = jsonReply(429, {
    error: "rate_limit_exceeded",
    message: `Rate limit exceeded. Try again in ${wait} seconds.`,
    ...(seconds === null ? {} : { retry_after: seconds }),
  });
  return retryAfter === null ? reply : { ...reply, headers: { ...reply.headers, "retry-after": retryAfter } };
}

/** The headers that state a limit (section 8.1). The reset is on the service's clock, and never before it is true. */
export const limitHeaders = (verdict: Verdict, skewMs: number): Record<string, string> => ({
  "x-ratelimit-limit": String(verdict.limit),
  "x-ratelimit-remaining": String(Math.max(0, Math.floor(verdict.remaining))),
  "x-ratelimit-reset": String(Math.ceil((verdict.resetEpochMs + skewMs) / 1_000)),
});

/** The headers that faults state in place of the true ones. */
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

/** The Date header on the service's clock. */
export const dateHeader = (at: EpochMs): Record<string, string> => ({ date: new Date(at).toUTCString() });

/**
 * What stands in the service's way: the fault answers, and the request is not carried out. Null: it lets it through.
 * `serviceNow` is on the clock of the service, skewed or not.
 */
export function interceptedReply(fault: FaultKind, serviceNow: EpochMs): Reply | null {
  switch (fault.kind) {
    case "status":
      return statusReply(fault, serviceNow);
    case "hang":
      return { status: 0, headers: {}, body: "", deliveryFault: { kind: "hang" } };
    case "reset":
      return { status: 0, headers: {}, body: "", deliveryFault: { kind: "reset" } };
    case "html":
      return { status: 200, headers: { "content-type": "text/html; charset=utf-8" }, body: SIGN_IN_PAGE };
    case "redirect":
      return { status: 302, headers: { location: fault.location }, body: "" };
    default:
      return null;
  }
}

/** Applies a fault to the reply of a request that was executed. A reply without a body can be lost, and no more. */
export function distortReply(fault: FaultKind, reply: Reply): Reply {
  if (fault.kind === "lost_reply") return { ...reply, deliveryFault: { kind: "reset" } };
  if (reply.body === "") return reply;
  switch (fault.kind) {
    case "truncate":
      return { ...reply, deliveryFault: { kind: "truncate" } };
    case "slow_drip":
      return { ...reply, deliveryFault: { kind: "slow_drip", bytesPerSecond: fault.bytesPerSecond } };
    case "huge_body":
      return { ...reply, deliveryFault: { kind: "huge_body", bytes: fault.bytes } };
    case "bad_json":
      return { ...reply, body: `${String(reply.body).slice(0, -1)},` };
    case "wrong_shape":
      return jsonReply(reply.status, { data: { items: "none" }, pagination: [] });
    default:
      return reply;
  }
}

/** What to call a reply that never comes as one, where replies are counted by their status. */
export const outcomeLabel = ({ status, deliveryFault }: Reply): number | DeliveryFault["kind"] =>
  deliveryFault?.kind === "hang" || deliveryFault?.kind === "reset" || deliveryFault?.kind === "truncate"
    ? deliveryFault.kind
    : status;

/** The 429 of a gateway, which knows neither the service's limits nor its error bodies. */
export const gatewayLimitReply = (retryAfterSeconds: number | undefined): Reply => ({
  status: 429,
  headers: {
    "content-type": "text/html",
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
  },
  body: "<html><head><title>429 Too Many Requests</title></head></html>",
});

const SIGN_IN_PAGE = "<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>";

function statusReply(fault: Extract<FaultKind, { kind: "status" }>, serviceNow: EpochMs): Reply {
  const { status, retryAfter, retryAfterDateMs } = fault;
  const date = retryAfterDateMs === undefined ? null : new Date(serviceNow + retryAfterDateMs).toUTCString();
  const header = date ?? retryAfter ?? null;
  if (status === 429) return rateLimitedReply(header === null || !/^\d+$/.test(header) ? null : Number(header), header);
  const reply = jsonReply(status, { error: "upstream_error", message: `The service answered with ${status}` });
  return header === null ? reply : { ...reply, headers: { ...reply.headers, "retry-after": header } };
}

const jsonReply = (status: number, value: unknown): Reply => ({
  status,
  headers: { "content-type": JSON_TYPE },
  body: JSON.stringify(value),
});
