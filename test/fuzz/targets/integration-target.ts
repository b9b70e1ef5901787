import type { IntegrationClient } from "../../../src/api-client/integration-client.ts";
import { ok } from "../../../src/base/result.ts";
import { queryRange } from "../../../src/cli/backtest/history-reader.ts";
import { hasFiringAlerts } from "../../../src/notify/alertmanager.ts";
import { queryHasResult } from "../../../src/remediation/evaluation/external-blockers.ts";
import { bytesOf, jsonText, mutated, pick, randomBytes } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";

interface Input {
  readonly server: "prometheus" | "range" | "alertmanager";
  readonly status: number;
  readonly body: string;
}

const sample = (value: string) => [1_767_225_600.123, value];
const success = (resultType: string, result: readonly unknown[]) => ({
  status: "success",
  data: { resultType, result },
});

const seeds = {
  prometheus: [
    success("vector", [{ metric: { __name__: "ALERTS", alertname: "Upstream" }, value: sample("1") }]),
    success("vector", []),
    success("matrix", [{ metric: { job: "x" }, values: [sample("1"), sample("NaN")] }]),
    success("scalar", sample("0")),
    success("string", sample("text")),
    { ...success("vector", []), warnings: ["a store could not be read"], infos: ["x"] },
    { status: "error", errorType: "bad_data", error: 'invalid parameter "query": 1:4: parse error' },
  ],
  range: [
    success("matrix", [{ metric: { node_id: "node_1", status: "online" }, values: [sample("1"), sample("NaN")] }]),
    success("matrix", []),
    { ...success("matrix", []), warnings: ["a store could not be read"] },
    { status: "error", errorType: "timeout", error: "query timed out in expression evaluation" },
  ],
  alertmanager: [
    [],
    [
      {
        annotations: { summary: "x" },
        endsAt: "2026-03-01T00:00:00.000Z",
        fingerprint: "0123456789abcdef",
        receivers: [{ name: "oncall" }],
        startsAt: "2026-03-01T00:00:00.000Z",
        status: { inhibitedBy: [], silencedBy: [], state: "active" },
        labels: { alertname: "Upstream", severity: "critical" },
      },
    ],
    { code: 602, message: "bad matcher" },
    "bad request",
  ],
} as const;

const GRID = { startMs: 1_767_225_600_000, stepMs: 1_000, points: 3 };
const statuses = [200, 200, 200, 200, 204, 301, 400, 404, 422, 500, 503];
/** The message is shown to operators as the detail of a hold. */
const MESSAGE_CHARACTERS_MAX = 2_000;

/** Replies of Prometheus and Alertmanager, read by their clients. */
export const createTarget = (): FuzzTarget<Input> => ({
  generate(random) {
    const server = pick(random, ["prometheus", "range", "alertmanager"] as const);
    const seed = pick(random, seeds[server] as readonly Parameters<typeof mutated>[1][]);
    const body = random() < 0.02 ? randomBytes(random, 200) : jsonText(random, mutated(random, seed));
    return { server, status: pick(random, statuses), body };
  },
  async run({ server, status, body }) {
    const client: IntegrationClient = {
      request: () => Promise.resolve(ok({ status, headers: {}, body: bytesOf(body) })),
      close: () => Promise.resolve(),
    };
    const signal = new AbortController().signal;
    if (server === "range") {
      const series = await queryRange({ prometheus: client, signal }, "up == 0", GRID);
      if (series.ok)
        assert(
          series.value.every(({ values }) => values.length === GRID.points),
          "a series has other points",
        );
      else assert(series.error.message.length <= MESSAGE_CHARACTERS_MAX, "the error is too long");
      return;
    }
    const result = await (server === "prometheus"
      ? queryHasResult(client, "up == 0", signal)
      : hasFiringAlerts(client, ['severity="critical"'], signal));
    if (result.ok) assert(typeof result.value === "boolean", "the result is not a boolean");
    else assert(result.error.length <= MESSAGE_CHARACTERS_MAX, `the error has ${result.error.length} characters`);
  },
});
