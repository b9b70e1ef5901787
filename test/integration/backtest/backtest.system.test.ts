import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { BacktestReport } from "../../../src/cli/output/backtest-report.ts";
import { runInProcess } from "../../cli/terminal.ts";
import { noFailureRates } from "../../harness/daemon/quiet-network.ts";
import type { VirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actualNodes } from "../../harness/simulator/actual-state.ts";
import { createInterventions } from "../../harness/simulator/interventions.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { runPrometheus } from "../prometheus/monitoring-servers.ts";
import { type RecordedHistory, recordHistory } from "./recorded-history.ts";

/** A step of the replay, and a scrape interval. */
const RESOLUTION_MS: DurationMs = 2 * MINUTE_MS;
const GAP = { from: 200 * MINUTE_MS, until: 230 * MINUTE_MS };
/** Less than a query for the whole history needs. */
const SAMPLES_MAX = 20_000;

const policies = [
  rebootOffline({ forMs: 5.5 * MINUTE_MS }),
  rebootOffline({
    name: "cool-hot-cpu",
    when: 'node.status == "online" && node.cpu_usage > 0.95',
    forMs: 12 * MINUTE_MS,
    steps: [steps.disconnect, steps.quarantine],
  }),
];

const folder = mkdtempSync(join(tmpdir(), "proxywarden-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Nodes by what happens to them. */
const nodes = { down: "", recovered: "", blip: "", hot: "", inGap: "", region: [] as string[] };
let history: RecordedHistory;

beforeAll(async () => {
  history = await recordHistory(folder, {
    nodes: 30,
    durationMs: 6 * HOUR_MS,
    rates: noFailureRates,
    config: remediationConfig(policies, { mode: "dry_run" }),
    beforeScrape(at, daemon) {
      causeFaults(at, daemon);
      return at < GAP.from || at >= GAP.until;
    },
  });
}, 120_000);

function causeFaults(at: DurationMs, { service, clock }: VirtualDaemon): void {
  const interventions = createInterventions(service, clock.now);
  const fail = (node: string, forMs: DurationMs) =>
    interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: clock.now() + forMs });
  switch (at / MINUTE_MS) {
    case 10: {
      const all = [...actualNodes(service)];
      const [{ region } = all[0]!] = all;
      nodes.region = all.filter((node) => node.region === region).map(({ id }) => id);
      const others = all.filter((node) => node.region !== region).map(({ id }) => id);
      [nodes.down, nodes.recovered, nodes.blip, nodes.hot, nodes.inGap] = others as [
        string,
        string,
        string,
        string,
        string,
      ];
      break;
    }
    case 30:
      fail(nodes.down, 6 * HOUR_MS);
      break;
    case 60:
      fail(nodes.recovered, 9 * MINUTE_MS);
      break;
    case 90:
      fail(nodes.blip, 3 * MINUTE_MS);
      break;
    case 130:
      for (const node of nodes.region) fail(node, 40 * MINUTE_MS);
      break;
    case 205:
      fail(nodes.inGap, 9 * MINUTE_MS);
      break;
    case 250:
      interventions.startFailure(nodes.hot, { failureMode: "hot", remedy: "operator" });
      break;
  }
}

/** Runs `policy backtest` over the recorded history. */
async function backtest(...args: readonly string[]) {
  const prometheus = await runPrometheus("{}", { data: history.data, flags: [`--query.max-samples=${SAMPLES_MAX}`] });
  const files = createTempFolder();
  const config = files.write("proxywarden.yaml", CONFIG);
  files.write("policies.yaml", policyFile("12m"));
  const time = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z");
  const range = ["--since", time(history.startMs), "--until", time(history.endMs)];
  return runInProcess("policy", "backtest", "--config", config, "--prometheus", prometheus.url, ...range, ...args);
}

const CONFIG = `service: {base_url: https://proxy.example.net, api_key: sesame, usage_scale: ratio}
policies: [policies.yaml]
`;

/** The policies as a file. */
const policyFile = (hotFor: string) => `policies:
  - name: reboot-offline
    when: node.status == "offline"
    for: 5m30s
    steps: [{action: reboot, verify: {within: 10m}}, {action: reboot, force: true, verify: {within: 15m}}]
  - name: cool-hot-cpu
    when: node.status == "online" && node.cpu_usage > 0.95
    for: ${hotFor}
    steps: [{action: disconnect, verify: {within: 3m}}, {action: quarantine, duration: 2h}]
`;

const reportOf = (out: string) => JSON.parse(out) as BacktestReport;

test("takes the actions of the live run, each within the resolution, and none in a gap of the history", async () => {
  const { code, out, err } = await backtest("--output", "json");
  expect({ code, err: err.replace(/^replaying.*\n/gm, "") }).toEqual({ code: 0, err: "" });
  const { history: read, in_force: replayed, candidate } = reportOf(out);
  const live = history.decisions.filter(({ verdict, node }) => verdict === "act" && node !== nodes.inGap);
  expect(replayed.actions.map(({ policy, node, step }) => ({ policy, node, step }))).toEqual(
    live.map(({ policy, node, step }) => ({ policy, node, step })),
  );
  const delays = replayed.actions.map(({ at }, index) => Date.parse(at) - live[index]!.at);
  expect(delays.filter((delay) => delay < 0 || delay > RESOLUTION_MS)).toEqual([]);
  expect(new Set(replayed.actions.map(({ node }) => node))).toEqual(new Set([nodes.down, nodes.recovered, nodes.hot]));
  expect(candidate).toBeNull();
  expect(read).toMatchObject({ resolution_seconds: 60, walk_interval_seconds: 60, nodes: 30, missing_fields: [] });
  expect(read.gaps).toHaveLength(1);
  const [gap] = read.gaps;
  expect(Date.parse(gap!.from) - history.startMs - GAP.from).toBe(RESOLUTION_MS);
  expect(Date.parse(gap!.until) - history.startMs - GAP.until).toBe(RESOLUTION_MS);
});

test("holds what safety held in the live run, for the same reasons and on as many nodes", async () => {
  // Before the gap, which in the replay is one of the fleet data, and in the live run was none.
  const untilMs = history.startMs + GAP.from;
  const until = new Date(untilMs).toISOString();
  const { in_force: replayed } = reportOf((await backtest("--output", "json", "--until", until)).out);
  const held = replayed.policies.flatMap(({ policy, held: own }) =>
    own.map(({ reason, nodes: count }) => [`${policy}: ${reason}`, count] as const),
  );
  const live = new Map<string, Set<string>>();
  for (const { at, policy, node, blockers } of history.decisions) {
    if (at > untilMs) continue;
    for (const { reason } of blockers) {
      const key = `${policy}: ${reason}`;
      live.set(key, (live.get(key) ?? new Set()).add(node));
    }
  }
  expect(live.get("reboot-offline: correlated")).toEqual(new Set(nodes.region));
  expect(new Map(held)).toEqual(new Map([...live].map(([key, { size }]) => [key, size])));
});

test("prints actions by day, holds, affected nodes, and the difference to the policies in force", async () => {
  const candidate = createTempFolder().write("hot.yaml", policyFile("1d"));
  const { code, out } = await backtest("--policies", candidate);
  expect(code).toBe(0);
  expect(out).not.toContain("no candidate was compared");
  expect(out).toContain(
    "  30 nodes; resolution 1m: shorter events may be missed, and times are accurate only to this resolution\n",
  );
  expect(out).toContain(
    [
      "in force: actions by day (UTC)",
      "  day         reboot-offline  cool-hot-cpu",
      "  2026-03-01               3             2",
    ].join("\n"),
  );
  expect(out).toContain("  cool-hot-cpu           2          0          -2\n");
  expect(out).toMatch(new RegExp(`no longer acted on: \\S+ \\(${nodes.hot}\\)\n$`));
});

test("says that no candidate was compared, and how the circuit breaker of a backtest differs", async () => {
  const { out } = await backtest();
  expect(out).toMatch(/\n\nno candidate was compared: pass --policies FILE\n$/);
  expect(out).toContain("  an open circuit breaker closes again after safety.breaker.within, as in a dry run");
});

test("names the fields that the history does not hold, and durations that are too short for it", async () => {
  const candidate = createTempFolder().write(
    "failing.yaml",
    `policies: [{name: failing, when: 'sessions.failed_ratio > 0.5 && node.ip_address != "192.0.2.1"', for: 4m, steps: [{action: disconnect}]}]\n`,
  );
  const { history: read } = reportOf((await backtest("--policies", candidate, "--step", "5m", "--output", "json")).out);
  expect(read.missing_fields).toEqual([
    { read_by: "failing", field: "sessions.failed_ratio", why: "not exported in the form that policies read" },
    {
      read_by: "failing",
      field: "node.ip_address",
      why: "proxynet_node_info has no label ip_address (export.node_labels)",
    },
  ]);
  expect(read.too_short).toContainEqual({ policy: "failing", key: "for" });
});

test("finds a history of a few hours in ten years, whose size is sampled once a week", async () => {
  const { code, out } = await backtest("--since", "2016-03-01T00:00:00Z", "--step", "2h");
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("\n  30 nodes; resolution 2h:") });
});

test("explains the problem if Prometheus has no such history, or can't be reached", async () => {
  expect(await backtest("--matchers", 'job="other"')).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /^proxywarden: --prometheus "http:.*": Prometheus has no samples of proxynet_node_status with job="other" in this time;/,
    ),
  });
  expect(await backtest("--prometheus", "http://127.0.0.1:9")).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^proxywarden: --prometheus "http:\/\/127.0.0.1:9": Prometheus: .*ECONNREFUSED/),
  });
});
