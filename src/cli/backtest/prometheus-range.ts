import type { IntegrationClient } from "../../api-client/integration-client.ts";
import { asRawRecord } from "../../api-client/json-body.ts";
import { type PrometheusFailure, requestPrometheus } from "../../api-client/prometheus.ts";
import { SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { EpochMs } from "../../model/time.ts";

/** The times of a range query: `points` of them, every `stepMs`. */
export interface TimeGrid {
  readonly startMs: EpochMs;
  readonly stepMs: number;
  readonly points: number;
}

/** One series of the result of a range query. */
export interface RangeSeries {
  readonly labels: Readonly<Record<string, string | undefined>>;
  /** A value for each point of the grid, or NaN if there is no sample. */
  readonly values: Float64Array;
}

/** Why a range query failed. */
export interface RangeFailure {
  /** Whether fewer points at once may succeed. */
  readonly isTooMuch: boolean;
  readonly message: string;
}

/** Messages of limit errors, from Prometheus and compatible servers. Their types and statuses do not identify them. */
const TOO_MUCH_PATTERN = /too many samples|maximum resolution|exceed|too large|larger than/i;
/** Statuses of proxies that limit the size of a request or response, or the time for it. */
const TOO_MUCH_STATUSES: ReadonlySet<number | null> = new Set([413, 504]);

/** Runs a range query. Never rejects. */
export async function queryRange(
  prometheus: IntegrationClient,
  query: string,
  grid: TimeGrid,
  signal: AbortSignal,
): Promise<Result<readonly RangeSeries[], RangeFailure>> {
  const { startMs, stepMs, points } = grid;
  const search = new URLSearchParams({
    query,
    start: String(startMs / SECOND_MS),
    end: String((startMs + (points - 1) * stepMs) / SECOND_MS),
    step: String(stepMs / SECOND_MS),
  });
  // Without a limit on values: the size of a body is limited, and nothing else waits for this process.
  const answer = await requestPrometheus(prometheus, `query_range?${search}`, signal, Number.POSITIVE_INFINITY);
  if (!answer.ok) {
    return fail({ message: answer.error.message, isTooMuch: isTooMuch(answer.error) });
  }
  const { data, warning } = answer.value;
  if (warning !== null) return fail({ isTooMuch: false, message: `Prometheus could not read all data: ${warning}` });
  const { result } = asRawRecord(data);
  if (!Array.isArray(result)) return fail({ isTooMuch: false, message: "Prometheus answered without a result" });
  return ok(result.map((series) => parseSeries(series, grid)));
}

function isTooMuch({ kind, status, errorType, message }: PrometheusFailure): boolean {
  if (kind !== null) return kind === "too_large" || kind === "timeout";
  return errorType === "timeout" || TOO_MUCH_STATUSES.has(status) || TOO_MUCH_PATTERN.test(message);
}

function parseSeries(series: unknown, { startMs, stepMs, points }: TimeGrid): RangeSeries {
  const values = new Float64Array(points).fill(Number.NaN);
  const { values: samples, metric } = asRawRecord(series);
  for (const sample of Array.isArray(samples) ? samples : []) {
    const [at, value]: readonly unknown[] = Array.isArray(sample) ? sample : [];
    const point = Math.round((Number(at) * SECOND_MS - startMs) / stepMs);
    if (point >= 0 && point < points) values[point] = Number(value);
  }
  return { labels: (metric ?? {}) as RangeSeries["labels"], values };
}
