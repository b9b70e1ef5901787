import {
  createIntegrationClient,
  type IntegrationAccess,
  type IntegrationClient,
} from "../../api-client/integration-client.ts";
import { asRawRecord } from "../../api-client/json-body.ts";
import { type PrometheusAnswer, requestPrometheus, textOf } from "../../api-client/prometheus-query.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { onOneLine, truncate } from "../../base/text.ts";
import type { ExternalBlocker } from "../../model/policy/policy.ts";
import type { Clock, ExternalBlockers } from "../../model/ports.ts";
import type { Blocker } from "../../model/remediation/episode.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { hasFiringAlerts } from "../../notify/alertmanager.ts";
import type { Policy } from "../../policy/policy.ts";

/** The last results of `blocked_by` queries to Prometheus and Alertmanager. */
export type ExternalBlockerCache = ReturnType<typeof createExternalBlockerCache>;

interface CachedResult {
  readonly at: MonotonicMs;
  /** Why it blocks, or null if it does not. */
  readonly blockedDetail: string | null;
}

/** Maximum age of a result. Older results are not used. */
const RESULT_AGE_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Interval of the queries of a policy while it fires on a node. */
export const QUERY_INTERVAL_MS: DurationMs = 30 * SECOND_MS;

/** Creates an empty cache of results. */
export function createExternalBlockerCache(externalBlockers: ExternalBlockers, clock: Clock) {
  const results = new Map<string, CachedResult>();
  const keyOf = (blockedBy: ExternalBlocker): string => JSON.stringify(blockedBy);

  /** Returns the result if it is not older than `maxAgeMs`, or null if there is none. */
  function resultWithin(blockedBy: ExternalBlocker, maxAgeMs: DurationMs): CachedResult | null {
    const result = results.get(keyOf(blockedBy));
    return result !== undefined && clock.monotonic() - result.at <= maxAgeMs ? result : null;
  }

  async function query(blockedBy: ExternalBlocker, signal: AbortSignal): Promise<void> {
    const answer = await externalBlockers.blocks(blockedBy, signal);
    const found = blockedBy.kind === "query" ? "it returns a result" : "one is firing";
    const detail = answer.ok ? found : `the query failed: ${answer.error}`;
    const blocks = !answer.ok || answer.value;
    results.set(keyOf(blockedBy), { at: clock.monotonic(), blockedDetail: blocks ? detail : null });
  }

  return {
    /** Returns what blocks a policy. A query without a recent result blocks as well. */
    blockers: ({ spec }: Policy): readonly Blocker<"blocked_by">[] =>
      spec.blockedBy.flatMap((blockedBy) => {
        const result = resultWithin(blockedBy, RESULT_AGE_MS_MAX);
        const detail = result === null ? "there is no recent result" : result.blockedDetail;
        return detail === null
          ? []
          : [{ reason: "blocked_by", detail: `${nameOfExternalBlocker(blockedBy)}: ${detail}` }];
      }),
    /** Runs the queries of a policy whose results are older than `maxAgeMs`. Never rejects. */
    async refresh({ spec }: Policy, signal: AbortSignal, maxAgeMs: DurationMs): Promise<void> {
      const due = spec.blockedBy.filter((blockedBy) => resultWithin(blockedBy, maxAgeMs) === null);
      await Promise.all(due.map((blockedBy) => query(blockedBy, signal)));
    },
  };
}

/** Names an external blocker in messages. */
export const nameOfExternalBlocker = (blockedBy: ExternalBlocker): string =>
  blockedBy.kind === "query"
    ? `the query ${onOneLine(blockedBy.query)}`
    : `alerts with ${blockedBy.matchers.map(onOneLine).join(", ")}`;

/** Access to the servers that `blocked_by` queries. A server that is null is not configured, and queries to it fail. */
interface ExternalBlockerDeps {
  readonly prometheus: IntegrationAccess | null;
  readonly alertmanager: IntegrationAccess | null;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/** Creates clients that query Prometheus and Alertmanager at each call. Nothing is cached. */
export function createExternalBlockers(deps: ExternalBlockerDeps): ExternalBlockers & { close(): Promise<void> } {
  const { clock, agent } = deps;
  const clientOf = (access: IntegrationAccess | null) =>
    access === null ? null : createIntegrationClient({ access, clock, agent });
  const prometheus = clientOf(deps.prometheus);
  const alertmanager = clientOf(deps.alertmanager);
  return {
    async blocks(blockedBy, signal) {
      if (blockedBy.kind === "query")
        return prometheus === null
          ? fail("no prometheus.url is configured")
          : queryHasResult(prometheus, blockedBy.query, signal);
      return alertmanager === null
        ? fail("no alertmanager.url is configured")
        : hasFiringAlerts(alertmanager, blockedBy.matchers, signal);
    },
    async close() {
      await prometheus?.close();
      await alertmanager?.close();
    },
  };
}

/**
 * Evaluates an instant query, and returns whether it has a result. As in an alerting rule, a vector or a matrix with
 * any element is a result, regardless of its value, and so is a scalar other than 0. The error says why the result is
 * unknown. If `at` is null, the query is evaluated now.
 */
export async function queryHasResult(
  prometheus: IntegrationClient,
  query: string,
  signal: AbortSignal,
  at: EpochMs | null = null,
): Promise<Result<boolean, string>> {
  const time = at === null ? "" : `&time=${at / SECOND_MS}`;
  const answer = await requestPrometheus(prometheus, `query?query=${encodeURIComponent(query)}${time}`, signal);
  return answer.ok ? parseQueryResponse(answer.value) : fail(answer.error.message);
}

function parseQueryResponse({ data, warning }: PrometheusAnswer): Result<boolean, string> {
  const { resultType: type, result } = asRawRecord(data);
  if (!Array.isArray(result)) return fail("Prometheus answered without a result");
  const hasResult = isResult(textOf(type), result);
  if (!hasResult.ok || hasResult.value) return hasResult;
  // A warning means that some data could not be read, so an empty result proves nothing.
  return warning === null ? hasResult : fail(`Prometheus found nothing, and warned: ${warning}`);
}

function isResult(type: string, result: readonly unknown[]): Result<boolean, string> {
  switch (type) {
    case "vector":
    case "matrix":
      return ok(result.length > 0);
    case "scalar": {
      const value = result[1];
      if (typeof value !== "string" || value === "") return fail("Prometheus answered with a scalar that has no value");
      // NaN is not 0, and blocks: a division by zero shows nothing.
      return ok(Number(value) !== 0);
    }
    default:
      return fail(`the query returns a ${truncate(type)}; it must return a vector, a matrix or a scalar`);
  }
}
