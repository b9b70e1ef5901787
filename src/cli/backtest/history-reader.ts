import type { IntegrationClient } from "../../api-client/integration-client.ts";
import { asRawRecord } from "../../api-client/json-body.ts";
import { type PrometheusFailure, requestPrometheus } from "../../api-client/prometheus-query.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { NODE_INFO, NODE_STATUS } from "../../metrics/families/node-families.ts";
import { NODE_LABELS } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { COLLECTOR_FAMILIES, HistoryChunk, type RangeSeries, type TimeGrid } from "./history-chunk.ts";
import { COMPARABLE_STATUSES, type HistoryFamilies, NODE_SESSIONS } from "./history-sources.ts";

/** A history in Prometheus. */
export interface HistorySource {
  readonly prometheus: IntegrationClient;
  /** PromQL label matchers that select the daemon, such as `job="proxywarden"`. An empty string selects all. */
  readonly matchers: string;
  readonly fromMs: EpochMs;
  readonly untilMs: EpochMs;
  /** Aborts reading. */
  readonly signal: AbortSignal;
}

/** Maximum number of points of one query. Prometheus returns at most 11,000 points per series. */
const POINTS_MAX = 10_000;
/**
 * Maximum number of samples of one query. They take about 7 MB of JSON, or 25 MB if each is from a different node.
 * Prometheus allows 50 million.
 */
const SAMPLES_MAX = 250_000;

/** A query, and where its series go. */
interface ChunkQuery {
  readonly query: string;
  add(chunk: HistoryChunk, series: RangeSeries): void;
}

/**
 * Reads the history of at most `nodes` nodes in chunks, in chronological order, so that neither Prometheus nor this
 * process holds much of it at once. A chunk that exceeds a limit of the server is read again in halves. Yields the first
 * failure, and then ends.
 */
export async function* readHistory(
  source: HistorySource,
  grid: TimeGrid,
  nodes: number,
  families: HistoryFamilies,
): AsyncGenerator<Result<HistoryChunk, string>> {
  const { startMs, stepMs } = grid;
  const queries = chunkQueries(families, source.matchers);
  let pointsMax = Math.max(1, Math.min(POINTS_MAX, Math.floor(SAMPLES_MAX / nodes)));
  for (let first = 0; first < grid.points; ) {
    const points = Math.min(pointsMax, grid.points - first);
    const read = await readChunk(source, queries, { startMs: startMs + first * stepMs, stepMs, points });
    if (read.ok) {
      yield read;
      first += points;
    } else if (read.error.isTooMuch && points > 1 && !source.signal.aborted) {
      pointsMax = Math.ceil(points / 2);
    } else {
      yield fail(read.error.message);
      return;
    }
  }
}

/** The size of a history. */
export interface HistorySize {
  /** Largest number of nodes. */
  readonly nodes: number;
  /** Median of the planned intervals of the node list, or null if the daemon's own metrics are not in the history. */
  readonly walkIntervalMs: DurationMs | null;
  /** Largest number of daemons with nodes at the same time. Of daemons that share a journal, only the leader has nodes. */
  readonly daemons: number;
}

/**
 * Number of points at which the size is sampled. As long as the server rejects that many, the number is divided by
 * {@link SIZE_POINTS_DIVISOR}.
 */
const SIZE_POINTS_MAX = 500;
const SIZE_POINTS_DIVISOR = 4;

/** Returns the size of the history between two times. Fails if there is none. */
export async function measureHistory(source: HistorySource): Promise<Result<HistorySize, string>> {
  const { matchers } = source;
  const countOf = (samples: string): string => `count by (job, instance) (${samples} == 1)`;
  const statuses = select(NODE_STATUS.name, matchers);
  let counts = await sampleSeries(source, () => countOf(statuses));
  // A short history may lie between two sampled points. Reading all samples is cheap if there are that few.
  if (counts.ok && counts.value.length === 0) {
    counts = await sampleSeries(source, (range) => countOf(`last_over_time(${statuses}[${range}])`));
  }
  if (!counts.ok) return counts;
  if (counts.value.length === 0) {
    const selection = matchers === "" ? "" : ` with ${matchers}`;
    return fail(
      `Prometheus has no samples of ${NODE_STATUS.name}${selection} in this time; check --since, --until and --matchers`,
    );
  }
  const planned = select("proxywarden_plan_interval_seconds", matchers, 'collector="nodes"');
  const series = await sampleSeries(source, (range) => `max(last_over_time(${planned}[${range}]))`);
  if (!series.ok) return series;
  const intervals = [...(series.value[0] ?? [])].filter((value) => !Number.isNaN(value));
  const median = intervals.toSorted((a, b) => a - b)[intervals.length >> 1];
  return ok({ ...countAtOnce(counts.value), walkIntervalMs: median === undefined ? null : median * SECOND_MS });
}

/**
 * Returns the largest number of nodes, and of daemons, at the same time. `counts` are the nodes of each daemon. A
 * number of daemons must occur at two points: when a daemon takes over from another, both may have nodes at one point.
 */
function countAtOnce(counts: readonly Float64Array[]): Pick<HistorySize, "nodes" | "daemons"> {
  const points = Array.from(counts[0]!, (_, point) =>
    counts.map((values) => values[point]!).filter((value) => !Number.isNaN(value)),
  );
  const daemons = points.map(({ length }) => length).toSorted((a, b) => b - a);
  return {
    nodes: Math.max(...points.map((known) => known.reduce((total, count) => total + count, 0))),
    daemons: Math.max(1, daemons[1] ?? daemons[0]!),
  };
}

/**
 * Returns the values of the series of a query at points up to the end of the history, NaN at those without a sample.
 * `queryOf` gets the time between two points, as PromQL writes it.
 */
async function sampleSeries(
  source: HistorySource,
  queryOf: (range: string) => string,
): Promise<Result<readonly Float64Array[], string>> {
  const { fromMs, untilMs, signal } = source;
  for (let pointsMax = SIZE_POINTS_MAX; ; pointsMax /= SIZE_POINTS_DIVISOR) {
    const stepMs = Math.max(MINUTE_MS, Math.ceil((untilMs - fromMs) / pointsMax / SECOND_MS) * SECOND_MS);
    const steps = Math.floor((untilMs - fromMs) / stepMs);
    const grid = { startMs: untilMs - steps * stepMs, stepMs, points: steps + 1 };
    const series = await queryRange(source, queryOf(`${stepMs / SECOND_MS}s`), grid);
    if (series.ok) return ok(series.value.map(({ values }) => values));
    if (!series.error.isTooMuch || pointsMax < SIZE_POINTS_DIVISOR || signal.aborted) return fail(series.error.message);
  }
}

async function readChunk(
  source: HistorySource,
  queries: readonly ChunkQuery[],
  grid: TimeGrid,
): Promise<Result<HistoryChunk, RangeFailure>> {
  const chunk = new HistoryChunk(grid);
  for (const { query, add } of queries) {
    const series = await queryRange(source, query, grid);
    if (!series.ok) return series;
    for (const found of series.value) add(chunk, found);
  }
  return ok(chunk);
}

/**
 * Returns the queries that read a chunk. Their results are aggregated over daemons, because several may be scraped, one of
 * which leads, and the address of a daemon may change.
 */
function chunkQueries({ columns, sessions }: HistoryFamilies, matchers: string): readonly ChunkQuery[] {
  const ofNodes = (family: string, labels: readonly string[], samples = select(family, matchers)): ChunkQuery => ({
    query: `max by (${["node_id", ...labels].join(", ")}) (${samples})`,
    add: (chunk, series) => chunk.addNode(family, series),
  });
  const countedSessions = select(NODE_SESSIONS, matchers, `status=~"${COMPARABLE_STATUSES.join("|")}"`);
  return [
    ofNodes(NODE_STATUS.name, ["status"], `${select(NODE_STATUS.name, matchers)} == 1`),
    ofNodes(NODE_INFO.name, NODE_LABELS),
    {
      query: `max by (__name__, collector) (${select("", matchers, `__name__=~"${COLLECTOR_FAMILIES.join("|")}"`)})`,
      add: (chunk, series) => chunk.addCollector(series),
    },
    {
      query: `max(timestamp(${select(COLLECTOR_FAMILIES[0], matchers, 'collector="nodes"')}))`,
      add: (chunk, series) => chunk.addScrapeTimes(series),
    },
    ...columns.map(({ name }) => ofNodes(name, [])),
    ...(sessions ? [ofNodes(NODE_SESSIONS, ["status"], countedSessions)] : []),
  ];
}

const select = (family: string, ...matchers: readonly string[]): string =>
  `${family}{${matchers.filter((matcher) => matcher !== "").join(",")}}`;

/** Why a range query failed. */
interface RangeFailure {
  /** Whether a query of fewer points may succeed. */
  readonly isTooMuch: boolean;
  readonly message: string;
}

/** Messages of limit errors, from Prometheus and compatible servers. Their types and statuses do not identify them. */
const TOO_MUCH_PATTERN = /too many samples|maximum resolution|exceed|too large|larger than/i;
/** Statuses of proxies that limit the size of a request or response, or the time for it. */
const TOO_MUCH_STATUSES: ReadonlySet<number | null> = new Set([413, 504]);

const SERVER_HINT = "it must be the URL of a running Prometheus that has the daemon's metrics";

/** Runs a range query. Incomplete results are failures. Never rejects. */
export async function queryRange(
  { prometheus, signal }: Pick<HistorySource, "prometheus" | "signal">,
  query: string,
  grid: TimeGrid,
): Promise<Result<readonly RangeSeries[], RangeFailure>> {
  const { startMs, stepMs, points } = grid;
  const search = new URLSearchParams({
    query,
    start: String(startMs / SECOND_MS),
    end: String((startMs + (points - 1) * stepMs) / SECOND_MS),
    step: String(stepMs / SECOND_MS),
  });
  // Without a limit on the number of values, because the body is limited, and nothing else waits for this process.
  const answer = await requestPrometheus(prometheus, `query_range?${search}`, signal, Number.POSITIVE_INFINITY);
  if (!answer.ok) {
    const { errorType, message } = answer.error;
    if (isTooMuch(answer.error)) return fail({ isTooMuch: true, message });
    // Without a type, the error is not from Prometheus.
    return fail({ isTooMuch: false, message: errorType === null ? `${message}; ${SERVER_HINT}` : message });
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
