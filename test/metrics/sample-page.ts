import { spawnSync } from "node:child_process";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { RenderInput } from "../../src/metrics/families/family.ts";
import { DETAIL_NUMBER_NAMES, LISTED_NUMBER_NAMES } from "../../src/model/node.ts";
import { buildFleet, buildSessions, renderInput } from "./snapshot-fixtures.ts";

const everyNumber = Object.fromEntries([...LISTED_NUMBER_NAMES, ...DETAIL_NUMBER_NAMES].map((name) => [name, 1]));

/** A snapshot in which every family has samples, some with unusual values. */
export const fullInput = (): RenderInput =>
  renderInput(
    {
      fleet: buildFleet(
        ['we"ird\na', "Zürich\\1", "plain"].map((name, index) => ({
          ...everyNumber,
          id: `node_${index}`,
          name,
          country: index === 0 ? "" : "DE",
          region: name,
          version: "2.4.1",
          lastSeenMs: 1_763_700_000_123,
          uptimeHours: index,
          activeSessions: 10 ** index,
          bandwidthGb: 1.5,
          cpuUsage: 1 / 3,
          memoryUsage: 0,
          diskUsage: 1,
          createdAtMs: 1_700_000_000_000,
          updatedAtMs: 1_763_600_000_000,
          detailedAt: 0,
          detailedAtEpochMs: 1_763_700_001_500,
        })),
      ),
      sessions: buildSessions(
        [{ id: "node_0", counts: { active: 2, unknown: 1 }, sentBytes: 1e18, receivedBytes: 1e22 }],
        {
          counts: { "active https": 2, "unknown unknown": 1 },
          countries: new Map([
            ["", 1],
            ["DE", 2],
          ]),
          customers: [{ customerId: 'cust_"a"', sessions: 3 }],
          durations: [{ counts: Float64Array.from([0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]), count: 1, sum: 12.5 }],
        },
      ),
      stats: {
        at: 0,
        value: {
          activeSessions: 3,
          sessionsToday: 30,
          bandwidthTodayGb: 0.25,
          peakConcurrentSessions: 9,
          averageDurationSeconds: 60,
          topCountries: [["DE", 2]],
          topProtocols: [["https", 2]],
        },
      },
      hourly: { at: 0, value: [{ hourMs: 0, activeSessions: 1, newSessions: 2, bandwidthGb: 3 }] },
    },
    { serviceNowMs: 3_600_000 },
  );

/** Daemon metrics with a sample of each kind. */
export function fullDaemonMetrics(): ReturnType<typeof createDaemonMetrics> {
  const daemonMetrics = createDaemonMetrics();
  daemonMetrics.set("proxywarden_build_info", { version: "0.1.0" }, 1);
  daemonMetrics.set("proxywarden_month_calls", {}, 12);
  daemonMetrics.set("proxywarden_ratelimit_reset_timestamp_seconds", { category: "node_management" }, 1_763_700_060);
  daemonMetrics.set("proxywarden_collect_complete", { collector: "nodes" }, 1);
  daemonMetrics.inc("proxywarden_api_requests_total", { endpoint: "nodes_list", code: "200" });
  daemonMetrics.observe("proxywarden_api_request_duration_seconds", { endpoint: "nodes_list" }, 0.2);
  return daemonMetrics;
}

/** Returns what promtool's linter finds in a page in text format, or empty if nothing. */
export const promtoolFindings = (text: string): string => run("promtool", ["check", "metrics"], text);

const STRICT_PARSER = `
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
text = sys.stdin.buffer.read().decode()
print(sum(len(family.samples) for family in text_string_to_metric_families(text)))
`;

/**
 * Returns the number of samples that the reference parser reads from an OpenMetrics page. Throws if it rejects the
 * page.
 */
export const openMetricsSamples = (text: string): number =>
  Number(run("/usr/bin/python3", ["-c", STRICT_PARSER], text));

function run(command: string, args: readonly string[], input: string): string {
  const { error, status, stdout, stderr } = spawnSync(command, args, { input, encoding: "utf8" });
  if (error !== undefined) throw new Error(`${command} is required by this test: ${error.message}`);
  if (status !== 0) throw new Error(`${command} failed:\n${stderr}${stdout}`);
  return stdout + stderr;
}
