import { describeJson, excerpt, truncate } from "../../api-client/errors.ts";
import {
  createIntegrationClient,
  type IntegrationAccess,
  type IntegrationClient,
} from "../../api-client/integration-client.ts";
import { bodyText, jsonField, parseJson } from "../../api-client/json-body.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { Clock, ExternalBlockers } from "../../model/ports.ts";
import { hasFiringAlerts } from "../../notify/alertmanager.ts";

/** Where `blocked_by` is looked up. Null: not configured, which every query reports. */
export interface ExternalBlockerDeps {
  readonly prometheus: IntegrationAccess | null;
  readonly alertmanager: IntegrationAccess | null;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/** Queries Prometheus and Alertmanager; nothing is cached. */
export function createExternalBlockers(parts: ExternalBlockerDeps): ExternalBlockers & { close(): Promise<void> } {
  const { clock, agent } = parts;
  const peerOf = (access: IntegrationAccess | null) =>
    access === null ? null : createIntegrationClient({ access, clock, agent });
  const prometheus = peerOf(parts.prometheus);
  const alertmanager = peerOf(parts.alertmanager);
  return {
    hasQueryResult: async (query, signal) =>
      prometheus === null ? fail("no prometheus.url is configured") : queryHasResult(prometheus, query, signal),
    hasFiringAlerts: async (matchers, signal) =>
      alertmanager === null
        ? fail("no alertmanager.url is configured")
        : hasFiringAlerts(alertmanager, matchers, signal),
    async close() {
      await prometheus?.close();
      await alertmanager?.close();
    },
  };
}

/** An error message becomes the detail of a hold, which the journal keeps; those of PromQL quote the query. */
const MESSAGE_CHARACTERS_MAX = 500;

/**
 * Whether an instant query, evaluated now, gives anything. As with an alerting rule, a vector or a matrix does if it has
 * any element, whatever its value; a scalar does unless it is 0. The error says why that is not known.
 */
export async function queryHasResult(
  peer: IntegrationClient,
  query: string,
  signal: AbortSignal,
): Promise<Result<boolean, string>> {
  const path = `/api/v1/query?query=${encodeURIComponent(query)}`;
  const answer = await peer.request({ method: "GET", path }, signal);
  if (!answer.ok) return fail(`Prometheus: ${answer.error}`);
  const { status, body } = answer.value;
  const text = bodyText(body);
  const json = parseJson(body);
  if (jsonField(json, "status") === "error") {
    const [type, error] = [jsonField(json, "errorType"), jsonField(json, "error")].map(textOf);
    return fail(truncate(`Prometheus answered ${status}: ${type}: ${error}`, MESSAGE_CHARACTERS_MAX));
  }
  if (status !== 200) return fail(`Prometheus answered ${status}: ${excerpt(text)}`);
  if (jsonField(json, "status") !== "success") return fail(`this is no answer of Prometheus: ${excerpt(text)}`);
  return parseQueryResponse(json);
}

/** A text as it is, and any other JSON value as JSON: an object may have a field `toString`, which String would call. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : describeJson(value));

function parseQueryResponse(json: unknown): Result<boolean, string> {
  const data = jsonField(json, "data");
  const [type, result] = [jsonField(data, "resultType"), jsonField(data, "result")];
  if (!Array.isArray(result)) return fail("Prometheus answered without a result");
  const gives = hasElements(textOf(type), result);
  if (!gives.ok || gives.value) return gives;
  // A part of what was asked could not be read: nothing found there is no proof that there is nothing.
  const warnings = jsonField(json, "warnings");
  if (!Array.isArray(warnings) || warnings.length === 0) return gives;
  return fail(`Prometheus found nothing, and warned: ${excerpt(textOf(warnings[0]))}`);
}

function hasElements(type: string, result: readonly unknown[]): Result<boolean, string> {
  switch (type) {
    case "vector":
    case "matrix":
      return ok(result.length > 0);
    case "scalar": {
      const value = result[1];
      if (typeof value !== "string" || value === "") return fail("Prometheus answered with a scalar that has no value");
      // NaN is not 0: who divides by nothing does not know either.
      return ok(Number(value) !== 0);
    }
    default:
      return fail(`the query gives a ${truncate(type)}, of which nobody can say whether it is anything`);
  }
}
