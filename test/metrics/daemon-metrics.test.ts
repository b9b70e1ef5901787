import { describe, expect, test } from "vitest";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";

const createMetrics = () => createDaemonMetrics({ process: false });

/** The lines of one family as they are rendered. */
async function linesOf(
  daemonMetrics: ReturnType<typeof createMetrics>,
  name: string,
  format: "text" | "openmetrics" = "text",
) {
  const lines = (await daemonMetrics.render(format)).split("\n");
  return lines.filter((line) => line.includes(name));
}

describe("daemon metrics", () => {
  test("start at zero if the label values are known; gauges are absent until they are set", async () => {
    const text = await createMetrics().render("text");
    expect(text).toContain('proxywarden_ratelimit_exceeded_total{category="node_management"} 0\n');
    expect(text).toContain('proxywarden_collect_failures_total{collector="hourly",reason="not_json"} 0\n');
    expect(text).toContain('proxywarden_action_duration_seconds_bucket{action="reboot",le="+Inf"} 0\n');
    expect(text).not.toContain("gauge");
    expect(text).not.toContain("proxywarden_api_requests_total");
  });

  test("count, and set gauges; NaN removes a gauge from the page", async () => {
    const daemonMetrics = createMetrics();
    daemonMetrics.inc("proxywarden_api_requests_total", { endpoint: "node", code: "200" });
    daemonMetrics.inc("proxywarden_api_requests_total", { endpoint: "node", code: "200" }, 2);
    daemonMetrics.set("proxywarden_month_calls", {}, 17);
    daemonMetrics.set("proxywarden_month_calls_limit", {}, Number.NaN);
    expect(await linesOf(daemonMetrics, "proxywarden_api_requests_total")).toEqual([
      "# HELP proxywarden_api_requests_total Requests to the management service, by status code or kind of failure.",
      "# TYPE proxywarden_api_requests_total counter",
      'proxywarden_api_requests_total{endpoint="node",code="200"} 3',
    ]);
    expect(await linesOf(daemonMetrics, "month_calls")).toEqual([
      "# HELP proxywarden_month_calls Calls counted in the plan's current month, including detected calls by other users of the key.",
      "# TYPE proxywarden_month_calls gauge",
      "proxywarden_month_calls 17",
    ]);
  });

  test("have histograms with the bounds of the table, as floats in both formats", async () => {
    const daemonMetrics = createMetrics();
    daemonMetrics.observe("proxywarden_api_request_duration_seconds", { endpoint: "stats" }, 0.3);
    const text = await linesOf(daemonMetrics, '{endpoint="stats"');
    expect(text).toEqual([
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="0.01"} 0',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="0.025"} 0',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="0.05"} 0',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="0.1"} 0',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="0.25"} 0',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="0.5"} 1',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="1.0"} 1',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="2.5"} 1',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="5.0"} 1',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="10.0"} 1',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="30.0"} 1',
      'proxywarden_api_request_duration_seconds_bucket{endpoint="stats",le="+Inf"} 1',
      'proxywarden_api_request_duration_seconds_sum{endpoint="stats"} 0.3',
      'proxywarden_api_request_duration_seconds_count{endpoint="stats"} 1',
    ]);
    expect(await linesOf(daemonMetrics, '{endpoint="stats"', "openmetrics")).toEqual(text);
  });

  test("clear a gauge, with or without labels", async () => {
    const daemonMetrics = createMetrics();
    daemonMetrics.set("proxywarden_plan_interval_seconds", { collector: "nodes" }, 60);
    daemonMetrics.set("proxywarden_paused", {}, 1);
    daemonMetrics.clear("proxywarden_plan_interval_seconds");
    daemonMetrics.clear("proxywarden_paused");
    expect(await linesOf(daemonMetrics, "proxywarden_plan_interval_seconds")).toEqual([]);
    expect(await linesOf(daemonMetrics, "proxywarden_paused")).toEqual([]);
  });

  test("render each format independently of the other", async () => {
    const daemonMetrics = createMetrics();
    const before = await daemonMetrics.render("text");
    const open = await daemonMetrics.render("openmetrics");
    expect(open).toContain("# TYPE proxywarden_ratelimit_exceeded counter\n");
    expect(open).toContain('\nproxywarden_ratelimit_exceeded_total{category="plan"} 0\n');
    expect(await daemonMetrics.render("text")).toBe(before);
    expect(before).toContain("# TYPE proxywarden_ratelimit_exceeded_total counter\n");
  });

  test("neither modify nor keep the labels object that is passed", async () => {
    const daemonMetrics = createMetrics();
    const labels = { endpoint: "node" as const, code: "200" };
    daemonMetrics.inc("proxywarden_api_requests_total", Object.freeze(labels));
    expect(await linesOf(daemonMetrics, 'code="200"')).toHaveLength(1);
  });

  test("share nothing between instances", async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.set("proxywarden_month_calls", {}, 1);
    expect(await linesOf(other, "proxywarden_month_calls")).toEqual([]);
  });

  test("include those of the process unless disabled", async () => {
    expect(await createDaemonMetrics().render("text")).toContain("process_resident_memory_bytes ");
    expect(await createMetrics().render("text")).not.toContain("process_");
  });
});
