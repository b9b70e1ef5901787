import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault, FaultKind } from "../../../src/config/schema/scenario.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { parseRepositoryConfig } from "../../deploy/manifest.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { promtoolTest, RULE_TEST_HEAD, ruleGroups, seriesReadBy } from "../rule-files.ts";
import { scrapeSimulation } from "./simulated-scrapes.ts";

const INTERVAL_MS = MINUTE_MS;
const BEGIN_MS = 30 * MINUTE_MS;
/** A failure lasts for an hour. The cooldown after untrusted data, and the longest range of an alert, take half an hour. */
const FAILURE_MINUTES = 150;

const fault = (kind: FaultKind, match?: string): Fault => ({
  afterMs: BEGIN_MS,
  forMs: HOUR_MS,
  fault: kind,
  ...(match === undefined ? {} : { match }),
});
const dark = (...regions: readonly string[]) => regions.map((region) => fault({ kind: "region_dark", region }));

interface Failure {
  readonly what: string;
  readonly faults: readonly Fault[];
  readonly alerts: readonly string[];
}

const BLIND_ALERTS = ["ProxywardenBlind", "ProxywardenCollectorStale", "ProxywardenUntrusted"];

const failures: readonly Failure[] = [
  {
    what: "the API key is rejected",
    faults: [fault({ kind: "status", status: 401 })],
    alerts: ["ProxywardenApiKeyRefused", ...BLIND_ALERTS],
  },
  {
    what: "half of the fleet is offline",
    faults: dark("us-east", "us-west", "us-central", "eu-west"),
    alerts: ["ProxynetFleetOffline", "ProxynetNodesOffline", "ProxynetRegionDark"],
  },
  {
    what: "the service's clock is an hour ahead",
    faults: [fault({ kind: "clock_skew", skewMs: HOUR_MS })],
    alerts: ["ProxywardenClockSkewed", "ProxywardenUntrusted"],
  },
];
/** In the long form only, because each takes several seconds. */
const moreFailures: readonly Failure[] = [
  { what: "the service can't be reached", faults: [fault({ kind: "reset" })], alerts: BLIND_ALERTS },
  { what: "a proxy answers with a page", faults: [fault({ kind: "html" })], alerts: BLIND_ALERTS },
  { what: "a region is offline", faults: dark("us-west"), alerts: ["ProxynetRegionDark"] },
  {
    what: "the key lacks the scope of sessions",
    faults: [fault({ kind: "status", status: 403 }, "GET /v1/sessions")],
    alerts: ["ProxywardenApiKeyRefused", "ProxywardenCollectorStale"],
  },
  {
    what: "a gateway limits requests",
    faults: [fault({ kind: "gateway_limit", requestsPerMinute: 10, burst: 5 })],
    alerts: ["ProxywardenRateLimited"],
  },
  {
    what: "details can't be read",
    faults: [fault({ kind: "bad_details", nodes: 1, answer: "server_error" })],
    alerts: ["ProxywardenCollectorStale"],
  },
  {
    what: "a third of the nodes are missing from the list",
    faults: [fault({ kind: "vanished", missing: 0.33 })],
    alerts: ["ProxywardenBlind", "ProxywardenUntrusted"],
  },
];

const loaded = parseRepositoryConfig("config/proxywarden.yaml", { PROXYWARDEN_API_KEY: "simulation-key" });
const expressions = ruleGroups.flatMap(({ rules }) =>
  rules.flatMap(({ alert, expr }) => (alert === undefined ? [] : [expr])),
);

/** Runs the shipped configuration, and returns how the alerts that fire until a minute differ from the expected ones. */
async function wrongAlerts(
  run: { readonly faults: readonly Fault[]; readonly minutes: number; readonly usedCalls?: number },
  expected: { readonly ever: readonly string[]; readonly atEnd: readonly string[] },
): Promise<string> {
  const input_series = await scrapeSimulation({
    ...run,
    loaded,
    scenario: { ...defaultScenario, nodes: 100, sessions: 100, faults: run.faults },
    durationMs: run.minutes * MINUTE_MS,
    intervalMs: INTERVAL_MS,
    series: seriesReadBy(expressions),
  });
  const alertTest = (expr: string, alerts: readonly string[]) => ({
    expr: `group by (alertname) (${expr})`,
    eval_time: `${run.minutes}m`,
    exp_samples: alerts.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
  });
  const firing = 'ALERTS{alertstate="firing"}';
  const interval = `${INTERVAL_MS / SECOND_MS}s`;
  const promql_expr_test = [
    alertTest(`count_over_time(${firing}[${run.minutes}m])`, expected.ever),
    alertTest(firing, expected.atEnd),
  ];
  const tests = [{ interval, input_series, promql_expr_test }];
  const text = JSON.stringify({ ...RULE_TEST_HEAD, evaluation_interval: interval, tests });
  return promtoolTest(createTempFolder().write("alerts.yml", text));
}

/** In real time, on a busy machine. */
const RUN_MS_MAX = 3 * MINUTE_MS;

test.each(isLongRun ? [...failures, ...moreFailures] : failures)(
  "if $what, $alerts fire and no others, and they resolve afterwards",
  async ({ faults, alerts }) => {
    expect(await wrongAlerts({ faults, minutes: FAILURE_MINUTES }, { ever: alerts, atEnd: [] })).toBe("");
  },
  RUN_MS_MAX,
);

test(
  "if the daemon starts when the month's calls are used up, an alert says so",
  async () => {
    const alerts = [...BLIND_ALERTS, "ProxywardenMonthSpent"].toSorted();
    const run = { faults: [], minutes: 30, usedCalls: 999_900 };
    expect(await wrongAlerts(run, { ever: alerts, atEnd: alerts })).toBe("");
  },
  RUN_MS_MAX,
);
