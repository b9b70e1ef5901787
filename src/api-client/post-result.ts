import type { DurationMs } from "../base/duration.ts";
import { truncate } from "../base/text.ts";
import type { TransportResponse } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { type ActionReply, decodeActionReply } from "./decoding/records.ts";
import { type ActionCall, type Call, ENDPOINTS } from "./endpoints.ts";
import { excerpt } from "./errors.ts";
import { bodyText, readJson } from "./json-body.ts";
import { retryAfterOf } from "./rate-limit-headers.ts";

/**
 * Result of a POST, which is sent only once.
 * - `done`: 2xx. If the body is not JSON, the message of `reply` says so.
 * - `refused`: a 4xx other than 401, 403 and 429, or a 2xx with `success: false`: the service rejected the action.
 * - `credentials`: 401 or 403: not executed. A cap of the plan may also cause a 403.
 * - `rate_limited`: 429: not executed.
 * - `canceled`: its signal aborted before it was sent.
 * - `not_sent`: the service has certainly not received anything.
 * - `in_doubt`: no clear response: the action may have been executed or not.
 */
export type PostResult =
  | { readonly kind: "done"; readonly reply: ActionReply }
  | { readonly kind: "refused"; readonly status: number; readonly message: string }
  | { readonly kind: "credentials"; readonly status: 401 | 403; readonly message: string }
  | { readonly kind: "rate_limited"; readonly retryAfterMs: DurationMs | null; readonly message: string }
  | { readonly kind: "canceled" }
  | { readonly kind: "not_sent"; readonly message: string }
  | { readonly kind: "in_doubt"; readonly message: string };

/** Maximum bytes of an error body that are quoted in a message. */
const QUOTED_BYTES_MAX = 400;

/** Quotes the beginning of a body for a message. The spec does not define the bodies of errors. */
export const quoteBody = ({ body }: TransportResponse): string => excerpt(bodyText(body.subarray(0, QUOTED_BYTES_MAX)));

/** Returns what a 401 or 403 says about the API key. */
export const apiKeyProblem = ({ endpoint }: Call | ActionCall, response: TransportResponse): string =>
  response.status === 401
    ? "the API key is not accepted"
    : `the API key seems to lack the scope ${ENDPOINTS[endpoint].scope}, or a cap of the plan is reached; the service said ${quoteBody(response)}`;

/**
 * Interprets a complete response. `now` is the wall clock time of the response, for a Retry-After without a Date
 * header.
 */
export function postResultOf(call: ActionCall, response: TransportResponse, now: EpochMs): PostResult {
  const { status, headers } = response;
  const answered = `POST ${call.path} answered ${status}`;
  const body = quoteBody(response);
  switch (true) {
    case status >= 200 && status < 300:
      return resultOfSuccess(answered, response);
    case status === 401 || status === 403:
      return { kind: "credentials", status, message: `${answered}: ${apiKeyProblem(call, response)}` };
    case status === 429:
      return { kind: "rate_limited", retryAfterMs: retryAfterOf(response, now), message: answered };
    case status >= 400 && status < 500:
      return { kind: "refused", status, message: `${answered}: ${body}` };
    case status >= 300 && status < 400: {
      const target = excerpt(headers.location ?? "");
      const why = "the service itself does not redirect, and a proxy may have forwarded the request";
      return { kind: "in_doubt", message: `${answered}, to ${target}: not followed; ${why}` };
    }
    default:
      return { kind: "in_doubt", message: `${answered}: ${body}` };
  }
}

function resultOfSuccess(answered: string, response: TransportResponse): PostResult {
  const text = bodyText(response.body);
  if (text.trim() === "") return { kind: "done", reply: decodeActionReply(null) };
  const json = readJson(response);
  if (!json.ok) return { kind: "done", reply: { ...decodeActionReply(null), message: `${answered}: ${json.error}` } };
  const reply = decodeActionReply(json.value);
  if (reply.success !== false) return { kind: "done", reply };
  return {
    kind: "refused",
    status: response.status,
    message: `${answered}, success false: ${truncate(reply.message ?? text)}`,
  };
}
