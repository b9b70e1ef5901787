import { expect, test } from "vitest";
import type { IntegrationClient } from "../../../src/api-client/integration-client.ts";
import { DAY_MS } from "../../../src/base/duration.ts";
import { fail, ok } from "../../../src/base/result.ts";
import { measureHistory, queryRange } from "../../../src/cli/backtest/history-reader.ts";

const GRID = { startMs: 1_772_323_200_000, stepMs: 60_000, points: 3 };
const signal = new AbortController().signal;

/** A Prometheus that gives one answer, and the paths that were requested. */
function prometheusThatAnswers(status: number, answer: object) {
  const paths: (string | null)[] = [];
  const client: IntegrationClient = {
    request({ path }) {
      paths.push(path);
      return Promise.resolve(ok({ status, headers: {}, body: Buffer.from(JSON.stringify(answer)) }));
    },
    close: () => Promise.resolve(),
  };
  return { client, paths };
}

const matrix = (result: readonly object[]) => ({ status: "success", data: { resultType: "matrix", result } });

test("samples are placed on the grid, and points without one are NaN", async () => {
  const values = [
    [1_772_323_200, "0.5"],
    [1_772_323_320, "7"],
  ];
  const { client, paths } = prometheusThatAnswers(200, matrix([{ metric: { node_id: "node_1" }, values }]));
  expect(await queryRange({ prometheus: client, signal }, "up", GRID)).toEqual(
    ok([{ labels: { node_id: "node_1" }, values: Float64Array.of(0.5, Number.NaN, 7) }]),
  );
  expect(paths).toEqual(["/api/v1/query_range?query=up&start=1772323200&end=1772323320&step=60"]);
});

test("an answer about a large fleet is read", async () => {
  const result = Array.from({ length: 120_000 }, (_, index) => ({
    metric: { node_id: `node_${index}` },
    values: [
      [1_772_323_200, "1"],
      [1_772_323_260, "1"],
    ],
  }));
  const { client } = prometheusThatAnswers(200, matrix(result));
  const series = await queryRange({ prometheus: client, signal }, "up", GRID);
  expect(series).toMatchObject({ ok: true, value: { length: 120_000 } });
});

test.each([
  ["execution", "query processing would load too many samples into memory in query execution", true],
  ["timeout", "query timed out in expression evaluation", true],
  ["bad_data", "exceeded maximum resolution of 11,000 points per timeseries.", true],
  ["bad_data", 'invalid parameter "query": 1:4: parse error', false],
])("of the error %s: %s, fewer points may succeed: %s", async (errorType, error, isTooMuch) => {
  const { client } = prometheusThatAnswers(422, { status: "error", errorType, error });
  expect(await queryRange({ prometheus: client, signal }, "up", GRID)).toEqual({
    ok: false,
    error: { isTooMuch, message: `Prometheus answered 422: ${errorType}: ${error}` },
  });
});

test.each([
  ["one daemon that takes over from another is one fleet", ["30", "30", null], [null, "30", "30"], 60, 1],
  ["two daemons at the same time are counted", ["30", "30", "31"], [null, "20", "20"], 51, 2],
] as const)("%s", async (_, first, second, nodes, daemons) => {
  const series = [first, second].map((counts, index) => ({
    metric: { job: "proxywarden", instance: `proxywarden-${index}` },
    values: counts.flatMap((count, point) => (count === null ? [] : [[1_772_323_200 + 60 * point, count]])),
  }));
  const { client } = prometheusThatAnswers(200, matrix(series));
  const [fromMs, untilMs] = [GRID.startMs, GRID.startMs + 2 * GRID.stepMs];
  expect(await measureHistory({ prometheus: client, matchers: "", fromMs, untilMs, signal })).toMatchObject(
    ok({ nodes, daemons }),
  );
});

test("a history that is shorter than the time between two sampled points is found", async () => {
  const queries: string[] = [];
  const prometheus: IntegrationClient = {
    request({ path }) {
      const query = new URL(path ?? "", "http://prometheus").searchParams.get("query")!;
      queries.push(query);
      const series = [{ metric: { job: "proxywarden" }, values: [[1_772_323_200, "30"]] }];
      const result = query.includes("_over_time(") ? series : [];
      return Promise.resolve(ok({ status: 200, headers: {}, body: Buffer.from(JSON.stringify(matrix(result))) }));
    },
    close: () => Promise.resolve(),
  };
  const source = { prometheus, matchers: "", fromMs: GRID.startMs, untilMs: GRID.startMs + 30 * DAY_MS, signal };
  expect(await measureHistory(source)).toEqual(ok({ nodes: 30, daemons: 1, walkIntervalMs: 30_000 }));
  expect(queries).toEqual([
    "count by (job, instance) (proxynet_node_status{} == 1)",
    "count by (job, instance) (last_over_time(proxynet_node_status{}[5184s]) == 1)",
    'max(last_over_time(proxywarden_plan_interval_seconds{collector="nodes"}[5184s]))',
  ]);
});

const HINT = "it must be the URL of a running Prometheus that has the daemon's metrics";

test.each([
  ["unreachable", "connect timed out", false],
  ["reset", "read ETIMEDOUT", false],
  ["timeout", "no complete response within 120 s", true],
  ["too_large", "the body is larger than 67108864 bytes", true],
] as const)("without a response, %s: %s, fewer points may succeed: %s", async (kind, message, isTooMuch) => {
  const client: IntegrationClient = {
    request: () => Promise.resolve(fail({ kind, message })),
    close: () => Promise.resolve(),
  };
  expect(await queryRange({ prometheus: client, signal }, "up", GRID)).toEqual(
    fail({ isTooMuch, message: `Prometheus: ${message}${isTooMuch ? "" : `; ${HINT}`}` }),
  );
});

test.each([
  [413, true],
  [502, false],
  [504, true],
])("of the status %i of a proxy, fewer points may succeed: %s", async (status, isTooMuch) => {
  const { client } = prometheusThatAnswers(status, {});
  expect(await queryRange({ prometheus: client, signal }, "up", GRID)).toMatchObject({
    ok: false,
    error: { isTooMuch },
  });
});

test("a warning is a failure, because the history may lack data", async () => {
  const { client } = prometheusThatAnswers(200, { ...matrix([]), warnings: ["a store could not be read"] });
  expect(await queryRange({ prometheus: client, signal }, "up", GRID)).toEqual({
    ok: false,
    error: { isTooMuch: false, message: 'Prometheus could not read all data: "a store could not be read"' },
  });
});
