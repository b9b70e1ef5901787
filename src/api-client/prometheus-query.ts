import { fail, ok, type Result } from "../base/result.ts";
import { truncate } from "../base/text.ts";
import { describeJson, excerpt } from "./errors.ts";
import type { IntegrationClient, IntegrationFailure } from "./integration-client.ts";
import { asRawRecord, bodyText, parseJson } from "./json-body.ts";

/** Why Prometheus did not answer a query. */
export interface PrometheusFailure {
  /** Why there was no response, or null if there was one. */
  readonly kind: IntegrationFailure["kind"] | null;
  /** Status of the response, or null if there was none. */
  readonly status: number | null;
  /**
   * Type of the error, such as `bad_data` or `timeout`, or null if the response is not from Prometheus, or there was
   * none.
   */
  readonly errorType: string | null;
  /** For operators; contains no secret. */
  readonly message: string;
}

/** The answer to a successful query. */
export interface PrometheusAnswer {
  /** The field `data`, unchecked. */
  readonly data: unknown;
  /** The first warning, which says that part of the data could not be read, or null if there is none. */
  readonly warning: string | null;
}

/** Error messages are journaled as the detail of a hold, and those of PromQL quote the query. */
const MESSAGE_CHARACTERS_MAX = 500;

/**
 * Requests a path below `/api/v1/` of Prometheus. Never rejects. `valuesMax` limits the number of values in its JSON.
 */
export async function requestPrometheus(
  prometheus: IntegrationClient,
  path: string,
  signal: AbortSignal,
  valuesMax?: number,
): Promise<Result<PrometheusAnswer, PrometheusFailure>> {
  const answer = await prometheus.request({ method: "GET", path: `/api/v1/${path}` }, signal);
  if (!answer.ok) {
    const { kind, message } = answer.error;
    return fail({ kind, status: null, errorType: null, message: `Prometheus: ${message}` });
  }
  const { status, body } = answer.value;
  const failWith = (message: string, errorType: string | null = null) =>
    fail({ kind: null, status, errorType, message: truncate(message, MESSAGE_CHARACTERS_MAX) });
  const answered = asRawRecord(parseJson(body, valuesMax));
  if (answered.status === "error") {
    const [errorType, error] = [textOf(answered.errorType), textOf(answered.error)];
    return failWith(`Prometheus answered ${status}: ${errorType}: ${error}`, errorType);
  }
  if (status !== 200) return failWith(`Prometheus answered ${status}: ${excerpt(bodyText(body))}`);
  if (answered.status !== "success") {
    return failWith(`this is not a response from Prometheus: ${excerpt(bodyText(body))}`);
  }
  const { data, warnings } = answered;
  const warning = Array.isArray(warnings) && warnings.length > 0 ? excerpt(textOf(warnings[0])) : null;
  return ok({ data, warning });
}

/**
 * Returns a string as it is, and any other value as JSON: an object may have a field `toString`, which String would
 * call.
 */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : describeJson(value));
