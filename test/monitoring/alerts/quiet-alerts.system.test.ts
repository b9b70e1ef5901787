import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { LoadedConfig } from "../../../src/config/load.ts";
import { loadScenario, type Scenario } from "../../../src/config/schema/scenario.ts";
import { defaultScenario, demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { inRepository, parseRepositoryConfig, textOf } from "../../deploy/manifest.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { promtoolTest, RULE_TEST_HEAD, ruleGroups, seriesReadBy } from "../rule-files.ts";
import { scrapeSimulation } from "./simulated-scrapes.ts";

/** In the long form that of the shipped configuration of Prometheus. */
const INTERVAL_MS = (isLongRun ? 15 : 60) * SECOND_MS;

const DEMO_ENVIRONMENT = {
  DEMO_SERVICE: "http://127.0.0.1:9714",
  DEMO_KEY: "simulation-key",
  DEMO_PORT: "9713",
  DEMO_ADMIN_TOKEN_FILE: inRepository("deploy/compose/simulation_token"),
};

function composeScenario(): Scenario {
  const file = "deploy/compose/scenario.yaml";
  return orThrow(loadScenario({ file, text: textOf(file), env: {} }));
}

const KEY = { PROXYWARDEN_API_KEY: "simulation-key" };

/** A stock configuration, and the alerts of what its scenario lets happen. */
interface StockNetwork {
  readonly name: string;
  readonly hours: number;
  readonly loaded: LoadedConfig;
  readonly scenario: Scenario;
  readonly alerts: readonly string[];
}

const shipped: StockNetwork = {
  name: "the shipped configuration",
  // ProxywardenBudgetStretched fires if an hour differs from the same hour of a day before.
  hours: isLongRun ? 27 : 1,
  loaded: parseRepositoryConfig("config/proxywarden.yaml", KEY),
  scenario: defaultScenario,
  alerts: [],
};
const demo: StockNetwork = {
  name: "the demo",
  hours: isLongRun ? 6 : 1,
  loaded: parseRepositoryConfig("config/demo/proxywarden.yaml", DEMO_ENVIRONMENT),
  scenario: { ...demoScenario, service: { ...demoScenario.service, plan: "enterprise" } },
  alerts: [],
};
/** A region is down for five minutes. */
const compose: StockNetwork = {
  name: "compose.yaml",
  hours: 2,
  loaded: parseRepositoryConfig("deploy/compose/proxywarden.yaml", KEY),
  scenario: composeScenario(),
  alerts: ["ProxynetRegionDark"],
};

const alertExpressions = ruleGroups.flatMap(({ rules }) =>
  rules.flatMap(({ alert, expr }) => (alert === undefined ? [] : [expr])),
);

/** No alert depends on the number of nodes or sessions, and reading them takes most of the time. */
const SESSIONS = isLongRun ? defaultScenario.sessions : 100;
const NODES = isLongRun ? defaultScenario.nodes : 100;

/** In real time, on a busy machine. */
const RUN_MS_MAX = isLongRun ? HOUR_MS : 2 * MINUTE_MS;

test.each([shipped, demo, ...(isLongRun ? [compose] : [])])(
  "the alerts within $hours simulated hours of $name are $alerts",
  async (network) => {
    const { loaded, scenario, hours, alerts } = network;
    const input_series = await scrapeSimulation({
      loaded,
      scenario: { ...scenario, nodes: NODES, sessions: SESSIONS },
      durationMs: hours * HOUR_MS,
      intervalMs: INTERVAL_MS,
      series: seriesReadBy(alertExpressions),
    });
    const interval = `${INTERVAL_MS / SECOND_MS}s`;
    const file = createTempFolder().write(
      "alerts.yml",
      JSON.stringify({
        ...RULE_TEST_HEAD,
        evaluation_interval: interval,
        tests: [
          {
            interval,
            input_series,
            promql_expr_test: [
              {
                expr: `group by (alertname) (count_over_time(ALERTS{alertstate="firing"}[${hours}h]))`,
                eval_time: `${hours}h`,
                exp_samples: alerts.map((name) => ({ ...ONE, labels: `{alertname="${name}"}` })),
              },
              // The simulation has samples until its end.
              { expr: `count(sum by (job) (proxynet_nodes) == ${NODES})`, eval_time: `${hours}h`, exp_samples: [ONE] },
            ],
          },
        ],
      }),
    );
    expect(await promtoolTest(file)).toBe("");
  },
  RUN_MS_MAX,
);

const ONE = { labels: "{}", value: 1 };
