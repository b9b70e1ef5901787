import { expect, test } from "vitest";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { promtoolTest, RULE_TEST_HEAD } from "../rule-files.ts";
import { ANY, allDashboardQueries, interpolated } from "./dashboard-files.ts";

const BYTES_PER_SECOND = 418e6;

const labels = 'job="proxywarden",instance="a"';

/**
 * Series of a daemon that walks the sessions of constant traffic; each walk ends up to a tenth of the interval off its
 * time.
 */
function inputOf(intervalSeconds: number, scrapeSeconds: number, scrapes: number) {
  const walkedAt: number[] = [];
  for (let scrape = 0; scrape <= scrapes; scrape++) {
    const at = scrape * scrapeSeconds;
    const walk = Math.floor(at / intervalSeconds);
    const endOf = (each: number) => Math.round(intervalSeconds * (each + 0.1 * Math.abs(Math.sin(each))));
    walkedAt.push(Math.max(0, endOf(walk) <= at ? endOf(walk) : endOf(walk - 1)));
  }
  const series = (name: string, more: string, values: readonly number[]) => ({
    series: `${name}{${labels}${more}}`,
    values: values.join(" "),
  });
  const constant = (value: number) => walkedAt.map(() => value);
  return [
    series(
      "proxynet_session_sent_bytes_total",
      ',node_id="node_1"',
      walkedAt.map((at) => at * BYTES_PER_SECOND),
    ),
    series(
      "proxynet_session_received_bytes_total",
      ',node_id="node_1"',
      walkedAt.map((at) => at * BYTES_PER_SECOND),
    ),
    series("proxynet_node_info", ',node_id="node_1",region="eu",country="DE"', constant(1)),
    series("proxywarden_collect_last_success_timestamp_seconds", ',collector="sessions"', walkedAt),
    series("proxywarden_plan_interval_seconds", ',collector="sessions"', constant(intervalSeconds)),
  ];
}

/** The queries of all panels of traffic, and how many directions each adds up. */
const panels = allDashboardQueries.filter(({ expr }) => /proxynet_session_(?:sent|received)_bytes/.test(expr));

// Rules are evaluated as rarely as the default lookback of five minutes allows, which takes most of the time.
test.each([
  { minutes: 1, hours: 2, scrapeSeconds: 15, stepMinutes: 1, evaluationMinutes: 1 },
  { minutes: 6, hours: 5, scrapeSeconds: 15, stepMinutes: 1, evaluationMinutes: 4 },
  { minutes: 57, hours: 20, scrapeSeconds: 60, stepMinutes: 30, evaluationMinutes: 4 },
])("constant traffic is shown as constant if sessions are walked every $minutes minutes", async (each) => {
  const { minutes, hours, scrapeSeconds, stepMinutes, evaluationMinutes } = each;
  const seconds = hours * 3_600;
  // From when the range is full.
  const shownSeconds = Math.floor(seconds / 4);
  const tests = panels.map(({ expr }) => {
    const shown = interpolated(expr, { ...ANY, instance: "a" });
    const directions = expr.includes("_sent_") && expr.includes("_received_") ? 2 : 1;
    const range = `[${shownSeconds}s:${stepMinutes}m]`;
    const error = `abs((${shown}) / ${directions * BYTES_PER_SECOND} - 1)`;
    return {
      expr: `count(max_over_time((${error})${range}) < 0.01 and count_over_time((${shown})${range}) >= ${Math.floor(shownSeconds / 60 / stepMinutes)})`,
      eval_time: `${seconds}s`,
      exp_samples: [{ labels: "{}", value: 1 }],
    };
  });
  expect(tests.length).toBeGreaterThanOrEqual(6);
  const file = createTempFolder().write(
    "rates.yml",
    JSON.stringify({
      ...RULE_TEST_HEAD,
      evaluation_interval: `${evaluationMinutes}m`,
      tests: [
        {
          interval: `${scrapeSeconds}s`,
          input_series: inputOf(minutes * 60, scrapeSeconds, seconds / scrapeSeconds),
          promql_expr_test: tests,
        },
      ],
    }),
  );
  expect(await promtoolTest(file)).toBe("");
});
