import { expect, test } from "vitest";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { promtoolTest, RULE_TEST_HEAD } from "../rule-files.ts";
import { ANY, allDashboardQueries, interpolated } from "./dashboard-files.ts";

const LABELS = 'job="proxywarden",instance="a"';
const ACTION = `${LABELS},policy="offline",action="reboot"`;
const DAEMON = `proxywarden_build_info{${LABELS},version="1"}`;

/** Queries of a panel, with the values that Grafana puts in the place of its variables. */
const queriesOfPanel = (panel: string): readonly string[] =>
  allDashboardQueries
    .filter(({ where }) => where === panel)
    .map(({ expr }) => interpolated(expr, { ...ANY, __interval: "1m" }));

/** Evaluates expressions over series, given as pairs of series and values at intervals of 15 s. Returns what differs; empty: nothing. */
function evaluate(
  series: readonly (readonly [string, string])[],
  promql_expr_test: readonly object[],
): Promise<string> {
  const input_series = series.map(([name, values]) => ({ series: name, values }));
  const tests = [{ interval: "15s", input_series, promql_expr_test }];
  const text = JSON.stringify({ ...RULE_TEST_HEAD, evaluation_interval: "1m", tests });
  return promtoolTest(createTempFolder().write("panel.yml", text));
}

const sumOfBars = (outcome: string, value: number) => ({
  expr: `sum_over_time((sum by (outcome) (${queriesOfPanel("daemon.json: Actions by outcome")[0]}))[30m:1m]) and on (outcome) label_replace(vector(1), "outcome", "${outcome}", "", "")`,
  eval_time: "29m",
  exp_samples: [{ labels: `{outcome="${outcome}"}`, value }],
});

test("the bars of a panel add up to the events, also those of a new series and after a restart", async () => {
  const series = [
    [DAEMON, "1x120"],
    // 40 were counted before the first scrape; 3 in one minute; a restart after 5 more, then 2.
    [`proxywarden_actions_total{${ACTION},outcome="verified"}`, "40x21 43x18 48x20 0x9 2x60"],
    // The first event creates the series.
    [`proxywarden_actions_total{${ACTION},outcome="refused"}`, "_x21 1x30 2x70"],
  ] as const;
  expect(await evaluate(series, [sumOfBars("verified", 3 + 5 + 2), sumOfBars("refused", 2)])).toBe("");
});

test("the bars of a panel include events around a failed scrape, and around a restart that takes two minutes", async () => {
  const series = [
    // The scrapes fail after 10 minutes, and for two minutes from the 15th on, during which the daemon restarts.
    [DAEMON, "1x39 stale 1x19 stale _x7 1x60"],
    [`proxywarden_actions_total{${ACTION},outcome="verified"}`, "40x37 42x1 stale 43x19 stale _x7 2x60"],
  ] as const;
  expect(await evaluate(series, [sumOfBars("verified", 3 + 2)])).toBe("");
});

test("a node that is offline and was never seen is in the list of unhealthy nodes", async () => {
  const status = (node: string, value: string, state: string) =>
    [`proxynet_node_status{${LABELS},node_id="${node}",status="${state}"}`, value] as const;
  const info = (node: string) =>
    [`proxynet_node_info{${LABELS},node_id="${node}",name="${node}",region="eu",country="DE"}`, "1x4"] as const;
  const series = [
    ...["well", "seen", "never"].map(info),
    status("well", "1x4", "online"),
    status("seen", "1x4", "offline"),
    status("never", "0x4", "online"),
    status("never", "1x4", "offline"),
    [`proxynet_node_last_seen_timestamp_seconds{${LABELS},node_id="well"}`, "0x4"],
    [`proxynet_node_last_seen_timestamp_seconds{${LABELS},node_id="seen"}`, "0x4"],
  ] as const;
  const rows = queriesOfPanel("network.json: Unhealthy nodes").map((expr) => `(${expr})`);
  const list = {
    expr: `group by (node_id, status, region) (${rows.join(" or ")})`,
    eval_time: "1m",
    exp_samples: ["seen", "never"].map((node) => ({
      labels: `{node_id="${node}",status="offline",region="eu"}`,
      value: 1,
    })),
  };
  expect(await evaluate(series, [list])).toBe("");
});
