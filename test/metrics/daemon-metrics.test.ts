import { describe, expect, test } from "vitest";
import { createWardenMetrics } from "../../src/metrics/daemon-metrics.ts";

const createOwn = () => createWardenMetrics({ process: false });

/** The lines of one family as they are rendered. */
async function linesOf(warden: ReturnType<typeof createOwn>, name: string, format: "text" | "openmetrics" = "text") {
  const lines = (await warden.render(format)).split("\n");
  return lines.filter((line) => line.includes(name));
}

describe("the daemon's own metrics", () => {
  test("counters and histograms with closed labels start at zero, gauges are absent until they are set", async () => {
    const text = await createOwn().render("text");
    expect(text).toContain('proxywarden_ratelimit_exceeded_total{category="node_management"} 0\n');
    expect(text).toContain('proxywarden_collect_failures_total{collector="hourly",reason="not_json"} 0\n');
    expect(text).toContain('proxywarden_action_duration_seconds_bucket{action="reboot",le="+Inf"} 0\n');
    expect(text).not.toContain("gauge");
    expect(text).not.toContain("proxywarden_api_requests_total");
  });

  test("a counter counts, a gauge is what it was set to, and NaN leaves it out", async () => {
    const warden = createOwn();
    warden.inc("proxywarden_api_requests_total", { endpoint: "node", code: "200" });
    warden.inc("proxywarden_api_requests_total", { endpoint: "node", code: "200" }, 2);
    warden.set("proxywarden_month_calls", {}, 17);
    warden.set("proxywarden_month_calls_limit", {}, Number.NaN);
    expect(await linesOf(warden, "proxywarden_api_requests_total")).toEqual([
      "# HELP proxywarden_api_requests_total Requests to the management service, by status code or kind of failure.",
      "# TYPE proxywarden_api_requests_total counter",
      'proxywarden_api_requests_total{endpoint="node",code="200"} 3',
    ]);
    expect(await linesOf(warden, "month_calls")).toEqual([
      "# HELP proxywarden_month_calls Calls made in the month of the plan.",
      "# TYPE proxywarden_month_calls gauge",
      "proxywarden_month_calls 17",
    ]);
  });

  test("a histogram has the bounds of the table, as floats, in both formats", async () => {
    const warden = createOwn();
    warden.observe("proxywarden_api_request_duration_seconds", { endpoint: "stats" }, 0.3);
    const text = await linesOf(warden, '{endpoint="stats"');
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
    expect(await linesOf(warden, '{endpoint="stats"', "openmetrics")).toEqual(text);
  });

  test("a series that is removed is gone", async () => {
    const warden = createOwn();
    warden.set("proxywarden_plan_interval_seconds", { collector: "nodes" }, 60);
    warden.remove("proxywarden_plan_interval_seconds", { collector: "nodes" });
    expect(await linesOf(warden, "proxywarden_plan_interval_seconds")).toEqual([]);
  });

  test("one format leaves no trace in the other", async () => {
    const warden = createOwn();
    const before = await warden.render("text");
    const open = await warden.render("openmetrics");
    expect(open).toContain("# TYPE proxywarden_ratelimit_exceeded counter\n");
    expect(open).toContain('\nproxywarden_ratelimit_exceeded_total{category="plan"} 0\n');
    expect(await warden.render("text")).toBe(before);
    expect(before).toContain("# TYPE proxywarden_ratelimit_exceeded_total counter\n");
  });

  test("the labels that a caller passes are not written to, nor kept", async () => {
    const warden = createOwn();
    const labels = { endpoint: "node" as const, code: "200" };
    warden.inc("proxywarden_api_requests_total", Object.freeze(labels));
    expect(await linesOf(warden, 'code="200"')).toHaveLength(1);
  });

  test("two of them share nothing", async () => {
    const [one, other] = [createOwn(), createOwn()];
    one.set("proxywarden_month_calls", {}, 1);
    expect(await linesOf(other, "proxywarden_month_calls")).toEqual([]);
  });

  test("those of the process are among them unless declined", async () => {
    expect(await createWardenMetrics().render("text")).toContain("process_resident_memory_bytes ");
    expect(await createOwn().render("text")).not.toContain("process_");
  });
});
