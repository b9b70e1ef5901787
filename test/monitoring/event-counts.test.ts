import { expect, test } from "vitest";
import { createTempFolder } from "../harness/temp-folder.ts";
import { ANY, allDashboardQueries, interpolated } from "./dashboard-files.ts";
import { promtoolTest, RULE_TEST_HEAD } from "./rule-files.ts";

const LABELS = 'job="proxywarden",instance="a"';
const ACTION = `${LABELS},policy="offline",action="reboot"`;

test("the bars of a panel add up to the events, also those of a new series and after a restart", async () => {
  const { expr } = allDashboardQueries.find(({ where }) => where === "daemon.json: Actions by outcome")!;
  const bars = interpolated(expr, { ...ANY, __interval: "1m" });
  const count = (outcome: string, value: number) => ({
    expr: `sum_over_time((sum by (outcome) (${bars}))[30m:1m]) and on (outcome) label_replace(vector(1), "outcome", "${outcome}", "", "")`,
    eval_time: "29m",
    exp_samples: [{ labels: `{outcome="${outcome}"}`, value }],
  });
  const file = createTempFolder().write(
    "counts.yml",
    JSON.stringify({
      ...RULE_TEST_HEAD,
      evaluation_interval: "1m",
      tests: [
        {
          interval: "15s",
          input_series: [
            { series: `proxywarden_build_info{${LABELS},version="1"}`, values: "1x120" },
            // 40 were counted before the first scrape; 3 in one minute; a restart after 5 more, then 2.
            { series: `proxywarden_actions_total{${ACTION},outcome="verified"}`, values: "40x21 43x18 48x20 0x9 2x60" },
            // The first event creates the series.
            { series: `proxywarden_actions_total{${ACTION},outcome="refused"}`, values: "_x21 1x30 2x70" },
          ],
          promql_expr_test: [count("verified", 3 + 5 + 2), count("refused", 2)],
        },
      ],
    }),
  );
  expect(await promtoolTest(file)).toBe("");
});
