import { expect, test } from "vitest";
import { HOUR_MS, SECOND_MS } from "../../src/base/duration.ts";
import { defaultScenario, demoScenario } from "../../src/simulator/default-scenarios.ts";
import { inRepository, parseRepositoryConfig } from "../deploy/manifest.ts";
import { isLongRun } from "../harness/run-length.ts";
import { createTempFolder } from "../integration/folder.ts";
import { parsePromql } from "./promql.ts";
import { promtoolTest, RULE_TEST_HEAD, ruleGroups } from "./rule-files.ts";
import { scrapeSimulation } from "./simulated-scrapes.ts";

const HOURS = isLongRun ? 24 : 2;
/** In the long form that of the shipped configuration of Prometheus. */
const INTERVAL_MS = (isLongRun ? 15 : 60) * SECOND_MS;

const DEMO_ENVIRONMENT = {
  DEMO_SERVICE: "http://127.0.0.1:9714",
  DEMO_KEY: "simulation-key",
  DEMO_PORT: "9713",
  DEMO_ADMIN_TOKEN_FILE: inRepository("deploy/compose/simulation_token"),
};

const cases = [
  {
    name: "the shipped configuration and a healthy fleet of 500 nodes",
    loaded: parseRepositoryConfig("config/proxywarden.yaml", { PROXYWARDEN_API_KEY: "simulation-key" }),
    scenario: defaultScenario,
  },
  {
    name: "the demo",
    loaded: parseRepositoryConfig("config/demo/proxywarden.yaml", DEMO_ENVIRONMENT),
    scenario: { ...demoScenario, service: { ...demoScenario.service, plan: "enterprise" as const } },
  },
];

/** The series that the alerts read, also through recording rules. */
function seriesOfAlerts(): ReadonlySet<string> {
  const rules = ruleGroups.flatMap((group) => group.rules);
  const series = new Set<string>();
  const add = (expr: string) => {
    for (const { name } of parsePromql(expr).selectors) {
      if (series.has(name)) continue;
      series.add(name);
      for (const { record, expr: recorded } of rules) if (record === name) add(recorded);
    }
  };
  for (const { alert, expr } of rules) if (alert !== undefined) add(expr);
  return series;
}

/** No alert depends on the number of sessions, and reading them takes most of the time. */
const SESSIONS = isLongRun ? defaultScenario.sessions : 500;

test.each(cases)(`no alert fires within ${HOURS} simulated hours of $name`, async ({ loaded, scenario }) => {
  const input_series = await scrapeSimulation({
    loaded,
    scenario: { ...scenario, sessions: SESSIONS },
    durationMs: HOURS * HOUR_MS,
    intervalMs: INTERVAL_MS,
    series: seriesOfAlerts(),
  });
  const interval = `${INTERVAL_MS / SECOND_MS}s`;
  const file = createTempFolder().write(
    "alerts.yml",
    JSON.stringify({
      ...RULE_TEST_HEAD,
      evaluation_interval: interval,
      tests: [
        {
          ...{ interval, input_series },
          promql_expr_test: [
            {
              expr: `count_over_time(ALERTS{alertstate="firing"}[${HOURS}h])`,
              eval_time: `${HOURS}h`,
              exp_samples: [],
            },
            // The simulation has samples until its end.
            { expr: "count(sum by (job) (proxynet_nodes) == 500)", eval_time: `${HOURS}h`, exp_samples: [ONE] },
          ],
        },
      ],
    }),
  );
  expect(await promtoolTest(file)).toBe("");
});

const ONE = { labels: "{}", value: 1 };
