import { describe, expect, test } from "vitest";
import { type PlanOptions, runPlan } from "../../src/cli/plan.ts";
import { openSqliteStore } from "../../src/journal/sqlite/store.ts";
import { utcDay } from "../../src/rate-limit/monthly-budget.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { startHttpServer } from "../api-client/transport/http-server.ts";
import { orThrow } from "../harness/or-throw.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { configText, startNetwork } from "../integration/simulated-network.ts";
import { captureOutput } from "./terminal.ts";

/** No service listens there. */
const UNREACHABLE_URL = "http://127.0.0.1:9";

/** A configuration with the Business plan and default values, except for `limits`. */
function configured(serviceUrl = UNREACHABLE_URL, limits: object = {}) {
  const folder = createTempFolder();
  const sections = {
    limits: { plan: "business", ...limits },
    state: { path: folder.pathOf("state") },
    collect: requestedIntervals,
  };
  return { folder, file: folder.write("proxywarden.yaml", configText(serviceUrl, sections)) };
}

const requestedIntervals = {
  nodes: { every: "1m" },
  details: { max_age: "15m" },
  sessions: { every: "1m" },
  stats: { every: "1m" },
};

const run = (options: Omit<PlanOptions, "output"> & Partial<PlanOptions>) =>
  captureOutput((context) => runPlan({ output: "text", ...options }, context));

async function planned(options: Omit<PlanOptions, "output">) {
  const { code, out, err } = await run({ ...options, output: "json" });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out) as {
    network: Record<string, unknown>;
    month: { whole: boolean; calls: number; calls_limit: number; seconds_left: number };
    collectors: Record<
      string,
      { interval_seconds: number; slowdown: number; bound_by: string; calls_per_minute: number }
    >;
    calls_per_month: number;
  };
}

describe("for the given number of nodes and sessions", () => {
  test("the reserve is the effective one, even if a smaller one is configured", async () => {
    const { file } = configured(UNREACHABLE_URL, { reserve: "5%" });
    const { out } = await run({ config: file, nodes: 10, sessions: 10 });
    expect(out).toContain("; 12% of each is reserved");
  });

  test("the table shows intervals, ages, slowdowns and the limits that cause them", async () => {
    const { out, code } = await run({ config: configured().file, nodes: 5_000, sessions: 50_000 });
    expect(code).toBe(0);
    expect(out.split("\n")).toEqual([
      "network  5,000 nodes in 5 pages, 50,000 sessions in 50 pages, from the command line",
      "limits   node_management 100 a minute, session_monitoring 500 a minute, the plan 500 a minute; 20% of each is reserved for actions and other users of the key",
      "month    a full month of 30 days; polling may make 990,000 calls",
      "",
      "collector  endpoint                       requested  planned  slowdown  calls/min  calls/30d  age: median   worst",
      "nodes      GET /v1/nodes                         1m       1m      1.0x       5.00    216,000          30s      1m",
      "details    GET /v1/nodes/{id}                   15m    9h52m       39x       8.45    365,040        4h56m  12h20m",
      "sessions   GET /v1/sessions                      1m    5m55s      5.9x       8.45    365,040         3m1s    6m3s",
      "stats      GET /v1/sessions/stats                1m       1m      1.0x       1.00     43,200          30s      1m",
      "hourly     GET /v1/sessions/stats/hourly         1h       1h      1.0x       0.02        720          30m      1h",
      "total                                                                        22.9    990,000",
      "",
      "details: 15m is slowed down to 9h52m: within the plan's calls per month it gets 8.45 of the 333.3 calls/min that it needs",
      "sessions: 1m is slowed down to 5m55s: within the plan's calls per month it gets 8.45 of the 50.0 calls/min that it needs",
      "",
    ]);
  });

  test("--output json prints the same in seconds, with the name of the limit", async () => {
    const { network, collectors, month, calls_per_month } = await planned({
      config: configured().file,
      nodes: 5_000,
      sessions: 50_000,
    });
    expect(network).toMatchObject({ source: "options", nodes: 5_000, node_pages: 5, session_pages: 50 });
    expect(month).toMatchObject({ whole: true, calls_limit: 1_000_000 });
    expect(collectors.nodes).toMatchObject({ interval_seconds: 60, slowdown: 1, bound_by: null });
    expect(collectors.details!.bound_by).toBe("month");
    expect(calls_per_month).toBeCloseTo(990_000, 3);
  });
});

test("the plan uses the size and the calls in the daemon's state, without asking the service", async () => {
  const { file, folder } = configured();
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  const size = { nodes: 700, nodePages: 7, sessions: 9_000, sessionPages: 90 };
  await store.journal.commit([{ kind: "fact", key: "collect.network_size", value: JSON.stringify(size) }]);
  store.calls.add(utcDay(Date.now()), 12_345);
  // The daemon may be running and lock its folder.
  const { network, month } = await planned({ config: file });
  expect(network).toEqual({ source: "state", nodes: 700, node_pages: 7, sessions: 9_000, session_pages: 90 });
  expect(month).toMatchObject({ whole: false, calls: 12_345 });
  const replanned = await planned({ config: file, sessions: 18_000 });
  expect(replanned.network).toMatchObject({ source: "state", nodes: 700, sessions: 18_000, session_pages: 180 });
  store.close();
});

test("the plan is for the month of the daemon's state if the wall clock is in an earlier one", async () => {
  const { file, folder } = configured();
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  const size = { nodes: 700, nodePages: 7, sessions: 9_000, sessionPages: 90 };
  await store.journal.commit([
    { kind: "fact", key: "collect.network_size", value: JSON.stringify(size) },
    { kind: "fact", key: "month.first_day", value: "2999-02-01" },
  ]);
  store.calls.add("2999-01-31", 100);
  store.calls.add("2999-02-01", 5);
  const { month } = await planned({ config: file });
  expect(month).toMatchObject({ whole: false, calls: 5, seconds_left: 28 * 86_400 });
  store.close();
});

test("the table says where each count is from if only one was given", async () => {
  const { url } = await startNetwork({ scenario: { nodes: 1_300, sessions: 200 } });
  const { file } = configured(url);
  const { out } = await run({ config: file, nodes: 5_000 });
  expect(out).toMatch(
    /^network {2}5,000 nodes in 5 pages, from the command line; \d+ sessions in 1 page, as reported by the service\n/,
  );
  const { out: other } = await run({ config: file, sessions: 5_000 });
  expect(other).toMatch(
    /^network {2}1,300 nodes in 2 pages, as reported by the service; 5,000 sessions in 5 pages, from the command line\n/,
  );
});

test("without a daemon's state the service is asked for one page of each list", async () => {
  const { url, service } = await startNetwork({ scenario: { nodes: 1_300, sessions: 200 } });
  const { network } = await planned({ config: configured(url).file });
  expect(network).toMatchObject({ source: "service", nodes: 1_300, node_pages: 2 });
  expect(service.serial).toBe(2);
});

test("if the service has only a page 0, its total is used", async () => {
  const service = { ...defaultScenario.service, firstPage: 0, pagesAfterEnd: "not_found" } as const;
  const { url } = await startNetwork({ scenario: { nodes: 30, sessions: 20, service } });
  const { network } = await planned({ config: configured(url).file });
  expect(network).toMatchObject({ source: "service", nodes: 30, node_pages: 1 });
});

test("if the service has only a page 0 and answers 400 to others, the page size stays as configured", async () => {
  const service = { ...defaultScenario.service, firstPage: 0, pagesAfterEnd: "rejected" } as const;
  const { url } = await startNetwork({ scenario: { nodes: 60, sessions: 200, service } });
  const { network } = await planned({ config: configured(url).file });
  expect(network).toMatchObject({ nodes: 60, node_pages: 1, session_pages: 1 });
});

test("if the service rejects the page size, smaller ones are tried, as the daemon does", async () => {
  const options = { pageLimitMax: 50, pageLimitOver: "reject" } as const;
  const service = { ...defaultScenario.service, ...options };
  const { url } = await startNetwork({ scenario: { nodes: 1_300, sessions: 200, service } });
  const { network } = await planned({ config: configured(url).file });
  expect(network).toMatchObject({ source: "service", nodes: 1_300, node_pages: 26 });
  const { network: larger } = await planned({ config: configured(url).file, nodes: 5_000 });
  expect(larger).toMatchObject({ nodes: 5_000, node_pages: 100 });
});

test("the command ends when the process is asked to stop", async () => {
  const options = { config: configured().file, nodes: 5_000, sessions: 50_000, output: "text" } as const;
  const stopped = captureOutput((context) => runPlan(options, { ...context, stop: AbortSignal.abort() }));
  expect(await stopped).toEqual({ code: 1, out: "", err: "proxywarden: stopped\n" });
});

test("the command does not blame the service when the process is asked to stop while it waits for a response", async () => {
  const stop = new AbortController();
  const { url } = await startHttpServer(() => {
    stop.abort();
    return null;
  });
  const options = { config: configured(url).file, output: "text" } as const;
  const stopped = captureOutput((context) => runPlan(options, { ...context, stop: stop.signal }));
  expect(await stopped).toEqual({ code: 1, out: "", err: "proxywarden: stopped\n" });
});

test("if the size is unknown, the error names --nodes and --sessions", async () => {
  const { code, out, err } = await run({ config: configured().file });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toMatch(
    /^proxywarden: can't read the size of the network from the service: .*; to plan without it, pass --nodes N --sessions N\n$/,
  );
});

test.each([
  ["a journal that no daemon has migrated yet", { path: "." }, "has schema version 0"],
  ["a database that can't be reached", { postgres: { url_file: "url" } }, "ECONNREFUSED"],
  ["no URL of the database", { postgres: { url_file: "no-such-url" } }, "state.postgres.url_file: "],
])("with %s, the plan for given numbers is shown, and others are an error", async (_, state, problem) => {
  const folder = createTempFolder();
  folder.write("proxywarden.db", "");
  folder.write("url", "postgres://nobody@127.0.0.1:1/none");
  const config = folder.write("proxywarden.yaml", configText(UNREACHABLE_URL, { state }));
  const shown = await run({ config, nodes: 5_000, sessions: 50_000 });
  const network = "network  5,000 nodes in 5 pages, 50,000 sessions in 50 pages, from the command line";
  expect([shown.code, shown.out.split("\n")[0]]).toEqual([0, network]);
  expect(shown.err).toMatch(/^warning: .*; the plan assumes pages of 1000 records \(service\.page_limit\)\n$/);
  expect(shown.err).toContain(problem);
  const failed = await run({ config, nodes: 5_000 });
  expect([failed.code, failed.out]).toEqual([1, ""]);
  expect(failed.err.split("\n")).toEqual([
    expect.stringContaining(problem),
    "proxywarden: to plan without the journal, pass --nodes N --sessions N",
    "",
  ]);
});

describe("without the secrets of the daemon", () => {
  const secrets = `service: {base_url: "${UNREACHABLE_URL}", api_key: "\${NO_SUCH_VARIABLE}", page_limit: 500}
web: {web_config_file: no-such-web.yml, admin_token_file: no-such-token}
state: {path: state}
`;

  test("the plan for given numbers is shown", async () => {
    const config = createTempFolder().write("proxywarden.yaml", secrets);
    const { network } = await planned({ config, nodes: 1_000, sessions: 10 });
    expect(network).toMatchObject({ source: "options", node_pages: 2 });
  });

  test("the size can't be asked of the service, and the error says what to pass instead", async () => {
    const config = createTempFolder().write("proxywarden.yaml", secrets);
    const { code, err } = await run({ config });
    expect(code).toBe(1);
    expect(err.trimEnd().split("\n")).toEqual([
      expect.stringMatching(
        /^proxywarden: .*:1:\d+: service\.api_key: .* the environment variable NO_SUCH_VARIABLE must be set$/,
      ),
      expect.stringMatching(/:2:\d+: web\.web_config_file: .*no-such-web\.yml/),
      expect.stringMatching(/:2:\d+: web\.admin_token_file: .*no-such-token/),
      expect.stringMatching(/to plan without the service, pass --nodes N --sessions N$/),
    ]);
  });

  test("a wrong value is an error", async () => {
    const config = createTempFolder().write("proxywarden.yaml", secrets.replace("500", "0"));
    expect((await run({ config, nodes: 1, sessions: 1 })).err).toContain("service.page_limit: found 0");
  });
});

test("an invalid configuration is rejected with the position of the error", async () => {
  const folder = createTempFolder();
  const config = folder.write("proxywarden.yaml", "service: {base_url: 7}\n");
  const { code, err } = await run({ config, nodes: 1, sessions: 1 });
  expect(code).toBe(1);
  expect(err).toContain(`${config}:1:21: service.base_url`);
});

test("for a cron schedule over the monthly limit the plan shows how many runs are skipped", async () => {
  const folder = createTempFolder();
  const sections = {
    limits: { plan: "starter" },
    state: { path: folder.pathOf("state") },
    collect: { ...requestedIntervals, nodes: { cron: "*/5 * * * * *" } },
  };
  const config = folder.write("proxywarden.yaml", configText(UNREACHABLE_URL, sections));
  const { out, code } = await run({ config, nodes: 40, sessions: 100 });
  expect(code).toBe(0);
  expect(out).toMatch(
    /^nodes: \d+ of \d+ runs of its cron schedule are skipped: within the plan's calls per month it gets \S+ of the 12\.0 calls\/min/m,
  );
});
