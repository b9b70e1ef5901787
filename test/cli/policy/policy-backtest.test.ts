import { createServer } from "node:http";
import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { ok } from "../../../src/base/result.ts";
import { runBacktest } from "../../../src/cli/backtest/backtest.ts";
import { runPolicyBacktest } from "../../../src/cli/policy/policy-backtest.ts";
import { nextTurn } from "../../../src/platform/event-loop.ts";
import { remediationConfig } from "../../harness/policies.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { captureOutput, runInProcess } from "../terminal.ts";

const HINT = "it must be the URL of a running Prometheus that has the daemon's metrics";

/** Runs `policy backtest` with a configuration that has these sections. */
async function backtest(sections: string, ...args: readonly string[]) {
  const folder = createTempFolder();
  const file = folder.write(
    "proxywarden.yaml",
    `service: {base_url: https://proxy.internal, api_key: sesame, usage_scale: ratio}\npolicies: []\n${sections}`,
  );
  return { file, ...(await runInProcess("policy", "backtest", "--config", file, ...args)) };
}

/** Starts a server that answers every request with this status and body, which may depend on the query. Returns its URL. */
async function startServer(status: number, body: string | ((query: string) => string)): Promise<string> {
  const server = createServer(({ url = "" }, response) => {
    const query = new URL(url, "http://prometheus.test").searchParams.get("query") ?? "";
    response.writeHead(status).end(typeof body === "string" ? body : body(query));
  });
  return `http://127.0.0.1:${await listenInTest(server)}`;
}

test("names the option, its URL without credentials, and what would be right, if no server is reachable", async () => {
  expect(await backtest("", "--prometheus", "http://user:secret@127.0.0.1:1")).toMatchObject({
    code: 1,
    err: `proxywarden: --prometheus "http://***@127.0.0.1:1": Prometheus: connect ECONNREFUSED 127.0.0.1:1; ${HINT}\n`,
  });
});

test("names the key of the configuration if the URL is from there", async () => {
  const { file, code, err } = await backtest("prometheus: {url: http://127.0.0.1:1}\n");
  expect({ code, err }).toEqual({
    code: 1,
    err: `proxywarden: prometheus.url "http://127.0.0.1:1" of ${file}: Prometheus: connect ECONNREFUSED 127.0.0.1:1; ${HINT}\n`,
  });
});

test("needs no secrets except those of Prometheus", async () => {
  const unset = `receivers: [{name: oncall, webhook_url_file: no-such-file}]
state: {postgres: {url_file: no-such-url}}
`;
  expect((await backtest(unset, "--prometheus", "http://127.0.0.1:1")).err).toContain("ECONNREFUSED");
  const prometheus = `${unset}prometheus: {url: "http://127.0.0.1:1", authorization: {credentials_file: no-such-token}}\n`;
  const { err } = await backtest(prometheus);
  expect(err).toContain("prometheus.authorization.credentials_file: ");
  expect(err).not.toContain("receivers");
});

test("names the URL of a server that is not a Prometheus", async () => {
  const url = await startServer(404, "no such page");
  expect((await backtest("", "--prometheus", url)).err).toBe(
    `proxywarden: --prometheus "${url}": Prometheus answered 404: "no such page"; ${HINT}\n`,
  );
});

test("names the URL of a Prometheus without the history, and the options that select it", async () => {
  const url = await startServer(200, JSON.stringify({ status: "success", data: { result: [] } }));
  expect((await backtest("", "--prometheus", url)).err).toBe(
    `proxywarden: --prometheus "${url}": Prometheus has no samples of proxynet_node_status in this time; check --since, --until and --matchers\n`,
  );
});

/** Returns the response to a query with a sample a minute in the last ten minutes of an online node of each instance. */
function lastTenMinutes(instances: readonly string[], sampleAt: (seconds: number) => number = () => 1): string {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const times = Array.from({ length: 10 }, (_, minute) => now - 60 * minute).toReversed();
  const result = instances.map((instance) => ({
    metric: { instance, node_id: "node_1", status: "online" },
    values: times.map((seconds) => [seconds, String(sampleAt(seconds))]),
  }));
  return JSON.stringify({ status: "success", data: { resultType: "matrix", result } });
}

test("replays nothing after the end of the history if the step is longer than the history", async () => {
  const url = await startServer(200, lastTenMinutes(["a:9713"]));
  const options = ["--since", "10m", "--step", "5y", "--output", "json"];
  const { code, out } = await backtest("", "--prometheus", url, ...options);
  const { history } = JSON.parse(out) as { history: { until: string; gaps: readonly unknown[] } };
  expect(code).toBe(0);
  expect(Date.parse(history.until)).toBeLessThanOrEqual(Date.now());
  expect(history.gaps).toEqual([]);
});

test("fails if the history has no nodes at the points that are read", async () => {
  const empty = JSON.stringify({ status: "success", data: { resultType: "matrix", result: [] } });
  const url = await startServer(200, (query) => (query.startsWith("count") ? lastTenMinutes(["a:9713"]) : empty));
  expect(await backtest("", "--prometheus", url, "--since", "10m", "--step", "1m")).toMatchObject({
    code: 1,
    err: `replaying the history: 100%\nproxywarden: --prometheus "${url}": Prometheus has samples of proxynet_node_status in this time, but none at the points that were read, which are 1m apart; narrow --since and --until, or use a smaller --step\n`,
  });
});

/** Starts a server whose history has only the status and `last_seen` of a node. Returns its URL, and the queries it gets. */
async function startNodeServer() {
  const queries: string[] = [];
  const url = await startServer(200, (query) => {
    queries.push(query);
    if (query.includes("last_seen")) return lastTenMinutes(["a:9713"], (seconds) => seconds);
    return lastTenMinutes(query.includes("proxynet_node_status") ? ["a:9713"] : []);
  });
  return { url, queries };
}

test("alerts in blocked_by whose value has no quotes become PromQL, which requires them", async () => {
  const { url, queries } = await startNodeServer();
  const policy = `policies:
  - name: disconnect
    when: node.status == "online"
    for: 1m
    steps: [{action: disconnect}]
    blocked_by: [{alerts: ['severity=critical', 'team =~ "a|b"', 'host=~eu\\.west']}]
`;
  const policies = createTempFolder().write("policy.yaml", policy);
  const alertmanager = "alertmanager: {url: http://127.0.0.1:1}\n";
  await backtest(alertmanager, "--prometheus", url, "--since", "10m", "--step", "1m", "--policies", policies);
  expect(queries).toContain('ALERTS{alertstate="firing",severity="critical",team =~ "a|b",host=~"eu\\\\.west"}');
});

test("names the safety limits whose region or country the history does not show", async () => {
  const { url } = await startNodeServer();
  const safety = "safety: {max_disrupted_per: {country: 1}, correlated: {by: country}}\n";
  const { out } = await backtest(safety, "--prometheus", url, "--since", "10m", "--step", "1m", "--output", "json");
  const { history } = JSON.parse(out) as { history: { missing_fields: { read_by: string; field: string }[] } };
  expect(history.missing_fields.map(({ read_by, field }) => `${read_by} ${field}`)).toEqual([
    "safety.max_disrupted_per node.country",
    "safety.min_online_per node.region",
    "safety.correlated node.country",
  ]);
});

test("warns if several daemons are in the history at the same time", async () => {
  const url = await startServer(200, lastTenMinutes(["a:9713", "b:9713"]));
  expect((await backtest("", "--prometheus", url, "--since", "10m", "--step", "1m")).out).toContain(
    "\n  2 daemons are in the history at the same time, and their nodes count as one fleet: select one with --matchers, such as --matchers 'instance=\"HOST:PORT\"'\n",
  );
});

test("ends when the process is asked to stop, without blaming the server", async () => {
  const prometheus = await startServer(200, lastTenMinutes(["a:9713"]));
  const service = "service: {base_url: https://proxy.internal, api_key: sesame}\n";
  const config = createTempFolder().write("proxywarden.yaml", service);
  const stopped = captureOutput((context) =>
    runPolicyBacktest({ config, prometheus, matchers: "", output: "text" }, { ...context, stop: AbortSignal.abort() }),
  );
  expect(await stopped).toEqual({ code: 1, out: "", err: "proxywarden: stopped\n" });
});

test("other work gets a turn at each point, so that Ctrl-C does not wait for all points that were read", async () => {
  const request = async () => ok({ status: 200, headers: {}, body: Buffer.from(lastTenMinutes(["a:9713"])) });
  const untilMs = Date.now();
  let isRunning = true;
  const replayed = runBacktest(
    {
      prometheus: { request, close: async () => {} },
      matchers: "",
      fromMs: untilMs - 10 * MINUTE_MS,
      untilMs,
      stepMs: MINUTE_MS,
      signal: new AbortController().signal,
      inForce: remediationConfig([]),
      candidate: null,
    },
    () => {},
  ).finally(() => {
    isRunning = false;
  });
  let turns = 0;
  for (; isRunning; turns++) await nextTurn();
  const found = await replayed;
  expect(turns).toBeGreaterThanOrEqual(found.ok ? found.value.grid.points : Number.NaN);
});

test("shows an address of Prometheus if the option is not a URL", async () => {
  expect((await backtest("", "--prometheus", "127.0.0.1:9090")).err).toContain("such as http://127.0.0.1:9090 ");
});
