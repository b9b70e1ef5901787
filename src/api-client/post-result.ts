import type { DurationMs } from "../base/duration.ts";
import type { TransportResponse } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { decodeActionReply } from "./decoding/records.ts";
import { type ActionCall, ENDPOINTS } from "./endpoints.ts";
import { excerpt, truncate } from "./errors.ts";
import { bodyText, readJson } from "./json-body.ts";
import { parseRetryAfter } from "./rate-limit-headers.ts";

/**
 * What became of a POST that was tried once.
 * - `done`: 2xx. `json` is null where there was no body, or none that is JSON, which `remark` tells.
 * - `refused`: a 4xx but 401, 403 and 429, or a 2xx that says `success: false`: the service doesn't want this.
 * - `credentials`: 401 or 403: not executed. A 403 may also come of a cap of the plan.
 * - `limited`: 429: not executed.
 * - `not_sent`: surely nothing of it reached the service.
 * - `in_doubt`: it may have been executed, and it may not: no clear answer came.
 */
export type PostResult =
  | { readonly kind: "done"; readonly json: unknown; readonly at: MonotonicMs; readonly remark: string | null }
  | { readonly kind: "refused"; readonly status: number; readonly message: string }
  | { readonly kind: "credentials"; readonly status: 401 | 403; readonly message: string }
  | { readonly kind: "limited"; readonly retryAfterMs: DurationMs | null; readonly message: string }
  | { readonly kind: "not_sent"; readonly message: string }
  | { readonly kind: "in_doubt"; readonly message: string };

/** Bytes of a foreign body that are looked at for a message. */
const QUOTED_BYTES_MAX = 400;

/** What a whole answer means. `at`: when it came; `now`: the same on our wall clock, for Retry-After without a Date. */
export function postResultOf(call: ActionCall, response: TransportResponse, at: MonotonicMs, now: EpochMs): PostResult {
  const { status, headers } = response;
  const serviceMessage = `POST ${call.path} answered ${status}`;
  const body = excerpt(bodyText(response.body.subarray(0, QUOTED_BYTES_MAX)));
  switch (true) {
    case status >= 200 && status < 300:
      return resultOfSuccess(serviceMessage, response, at);
    case status === 401:
      return { kind: "credentials", status: 401, message: `${serviceMessage}: the API key is not accepted` };
    case status === 403: {
      const { scope } = ENDPOINTS[call.endpoint];
      const message = `${serviceMessage}: the API key seems to lack the scope ${scope}, or a cap of the plan is reached; it said ${body}`;
      return { kind: "credentials", status: 403, message };
    }
    case status === 429:
      return { kind: "limited", retryAfterMs: parseRetryAfter(headers, now), message: serviceMessage };
    case status >= 400 && status < 500:
      return { kind: "refused", status, message: `${serviceMessage}: ${body}` };
    case status >= 300 && status < 400: {
      const target = excerpt(headers.location ?? "");
      const why = "the service itself redirects nothing, and whoever answered may have passed the request on";
      return { kind: "in_doubt", message: `${serviceMessage}, to ${target}: not followed; ${why}` };
    }
    default:
      return { kind: "in_doubt", message: `${serviceMessage}: ${body}` };
  }
}

function resultOfSuccess(serviceMessage: string, response: TransportResponse, at: MonotonicMs): PostResult {
  const text = bodyText(response.body);
  if (text.trim() === "") return { kind: "done", json: null, at, remark: null };
  const json = readJson(response);
  if (!json.ok) return { kind: "done", json: null, at, remark: `${serviceMessage}: ${json.error}` };
  const { success, message } = decodeActionReply(json.value);
  if (success !== false) return { kind: "done", json: json.value, at, remark: null };
  return {
    kind: "refused",
    status: response.status,
    message: `${serviceMessage}, success false: ${truncate(message ?? text)}`,
  };
}
