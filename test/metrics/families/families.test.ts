import { describe, expect, test } from "vitest";
import {
  NETWORK_FAMILIES,
  neededCollectors,
  networkFamilyNames,
} from "../../../src/metrics/families/network-families.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import { render, renderedLines, renderPage, textOf } from "../naive-renderer.ts";
import { buildFleet, buildSessions, type NodeFixture, renderInput, STALE_AFTER_MS } from "../snapshot-fixtures.ts";

const berlin: NodeFixture = {
  id: "node_1",
  name: "berlin-1",
  country: "DE",
  region: "eu-central",
  version: "2.4.1",
  ipAddress: "10.0.0.1",
  status: "online",
  lastSeenMs: 1_763_700_000_120,
  uptimeHours: 720,
  activeSessions: 45,
  bandwidthGb: 1.234_567_891,
  cpuUsage: 0.4327,
  memoryUsage: 0.5,
  diskUsage: 1,
  createdAtMs: 1_700_000_000_000,
  updatedAtMs: 1_763_600_000_000,
  detailedAt: 0,
  detailedAtEpochMs: 1_763_700_001_500,
};

test("every node family exports a node", () => {
  expect(renderPage({ fleet: buildFleet([berlin]) })).toBe(`\
# HELP proxynet_nodes Nodes by status, country and region, counting fresh records only; absent unless there was a recent walk.
# TYPE proxynet_nodes gauge
proxynet_nodes{status="online",country="DE",region="eu-central"} 1
proxynet_nodes{status="offline",country="DE",region="eu-central"} 0
proxynet_nodes{status="quarantined",country="DE",region="eu-central"} 0
proxynet_nodes{status="rebooting",country="DE",region="eu-central"} 0
proxynet_nodes{status="maintenance",country="DE",region="eu-central"} 0
proxynet_nodes{status="unknown",country="DE",region="eu-central"} 0
# HELP proxynet_node_info Node information; always 1.
# TYPE proxynet_node_info gauge
proxynet_node_info{node_id="node_1",name="berlin-1",country="DE",region="eu-central",version="2.4.1"} 1
# HELP proxynet_node_status 1 for the node's current status, 0 for the others.
# TYPE proxynet_node_status gauge
proxynet_node_status{node_id="node_1",status="online"} 1
proxynet_node_status{node_id="node_1",status="offline"} 0
proxynet_node_status{node_id="node_1",status="quarantined"} 0
proxynet_node_status{node_id="node_1",status="rebooting"} 0
proxynet_node_status{node_id="node_1",status="maintenance"} 0
proxynet_node_status{node_id="node_1",status="unknown"} 0
# HELP proxynet_node_last_seen_timestamp_seconds Time at which the service last saw the node, on the service's clock.
# TYPE proxynet_node_last_seen_timestamp_seconds gauge
proxynet_node_last_seen_timestamp_seconds{node_id="node_1"} 1763700000.120
# HELP proxynet_node_uptime_seconds Uptime of the node, reported by the service in whole hours.
# TYPE proxynet_node_uptime_seconds gauge
proxynet_node_uptime_seconds{node_id="node_1"} 2592000
# HELP proxynet_node_active_sessions Active sessions on the node, as reported in its record.
# TYPE proxynet_node_active_sessions gauge
proxynet_node_active_sessions{node_id="node_1"} 45
# HELP proxynet_node_bandwidth_bytes Bandwidth of the node, reported by the service in gigabytes; the service does not define the period.
# TYPE proxynet_node_bandwidth_bytes gauge
proxynet_node_bandwidth_bytes{node_id="node_1"} 1234567891
# HELP proxynet_node_cpu_usage_ratio CPU usage of the node, 0 to 1.
# TYPE proxynet_node_cpu_usage_ratio gauge
proxynet_node_cpu_usage_ratio{node_id="node_1"} 0.4327
# HELP proxynet_node_memory_usage_ratio Memory usage of the node, 0 to 1.
# TYPE proxynet_node_memory_usage_ratio gauge
proxynet_node_memory_usage_ratio{node_id="node_1"} 0.5000
# HELP proxynet_node_disk_usage_ratio Disk usage of the node, 0 to 1.
# TYPE proxynet_node_disk_usage_ratio gauge
proxynet_node_disk_usage_ratio{node_id="node_1"} 1.0000
# HELP proxynet_node_detail_timestamp_seconds Time at which the node's details, including its usage, were read.
# TYPE proxynet_node_detail_timestamp_seconds gauge
proxynet_node_detail_timestamp_seconds{node_id="node_1"} 1763700001.500
# HELP proxynet_node_created_timestamp_seconds Creation time of the node.
# TYPE proxynet_node_created_timestamp_seconds gauge
proxynet_node_created_timestamp_seconds{node_id="node_1"} 1700000000
# HELP proxynet_node_updated_timestamp_seconds Time of the last update of the node's record.
# TYPE proxynet_node_updated_timestamp_seconds gauge
proxynet_node_updated_timestamp_seconds{node_id="node_1"} 1763600000
`);
});

describe("nodes", () => {
  test("leave out fields that the service did not report", () => {
    expect(renderedLines("proxynet_node_", { fleet: buildFleet([{ id: "node_1", uptimeHours: 0 }]) })).toEqual([
      'proxynet_node_info{node_id="node_1",name="",country="",region="",version=""} 1',
      'proxynet_node_status{node_id="node_1",status="online"} 1',
      'proxynet_node_status{node_id="node_1",status="offline"} 0',
      'proxynet_node_status{node_id="node_1",status="quarantined"} 0',
      'proxynet_node_status{node_id="node_1",status="rebooting"} 0',
      'proxynet_node_status{node_id="node_1",status="maintenance"} 0',
      'proxynet_node_status{node_id="node_1",status="unknown"} 0',
      'proxynet_node_uptime_seconds{node_id="node_1"} 0',
    ]);
  });

  test("escape label values", () => {
    expect(renderedLines("proxynet_node_info", { fleet: buildFleet([{ id: 'no"de', name: 'we"ird\na\\' }]) })).toEqual([
      String.raw`proxynet_node_info{node_id="no\"de",name="we\"ird\na\\",country="",region="",version=""} 1`,
    ]);
  });

  test("carry the configured labels in node_info", () => {
    const options = { nodeLabels: ["ip_address" as const] };
    expect(renderedLines("proxynet_node_info", { fleet: buildFleet([berlin]) }, { options })).toEqual([
      'proxynet_node_info{node_id="node_1",ip_address="10.0.0.1"} 1',
    ]);
  });

  test("have no samples for an empty slot", () => {
    expect(renderedLines("proxynet_node_uptime", { fleet: buildFleet([null, berlin, null]) })).toEqual([
      'proxynet_node_uptime_seconds{node_id="node_1"} 2592000',
    ]);
  });

  test("are counted by every status and location, including zeros", () => {
    const fleet = buildFleet([
      berlin,
      { ...berlin, id: "node_2", status: "offline" },
      null,
      { ...berlin, id: "node_3" },
    ]);
    const counted = renderedLines('proxynet_nodes{status="o', { fleet });
    expect(counted.filter((line) => line.includes("DE"))).toEqual([
      'proxynet_nodes{status="online",country="DE",region="eu-central"} 2',
      'proxynet_nodes{status="offline",country="DE",region="eu-central"} 1',
    ]);
  });

  test("are not counted before the first complete walk", () => {
    expect(renderedLines("proxynet_nodes", { fleet: buildFleet([berlin], null) })).toEqual([]);
  });

  test("lose each sample when its own data is stale, by node, separately for list and detail", () => {
    const late = { ...berlin, id: "node_2", listedAt: 5_000, detailedAt: 5_000 };
    const fleet = buildFleet([{ ...berlin, listedAt: 5_000, detailedAt: 0 }, late], 0);
    const names = renderedLines("proxynet_", { fleet }, { now: STALE_AFTER_MS + 1 }).map((line) => line.split(" ")[0]);
    expect(names.filter((name) => name?.includes("cpu"))).toEqual(['proxynet_node_cpu_usage_ratio{node_id="node_2"}']);
    expect(names.filter((name) => name?.includes("uptime"))).toHaveLength(2);
    expect(names.filter((name) => name?.startsWith("proxynet_nodes{"))).toEqual([]);
  });
});

describe("sessions", () => {
  const failing = { failedListed: false, counts: { "active https": 7, "closed unknown": 2 } };

  test("are counted by status and type; unknown ones only if there are any, failed ones once the list has shown one", () => {
    expect(renderedLines("proxynet_sessions", { sessions: buildSessions([], failing) })).toEqual([
      'proxynet_sessions{status="active",session_type="socks5"} 0',
      'proxynet_sessions{status="active",session_type="http"} 0',
      'proxynet_sessions{status="active",session_type="https"} 7',
      'proxynet_sessions{status="active",session_type="websocket"} 0',
      'proxynet_sessions{status="connecting",session_type="socks5"} 0',
      'proxynet_sessions{status="connecting",session_type="http"} 0',
      'proxynet_sessions{status="connecting",session_type="https"} 0',
      'proxynet_sessions{status="connecting",session_type="websocket"} 0',
      'proxynet_sessions{status="closed",session_type="socks5"} 0',
      'proxynet_sessions{status="closed",session_type="http"} 0',
      'proxynet_sessions{status="closed",session_type="https"} 0',
      'proxynet_sessions{status="closed",session_type="websocket"} 0',
      'proxynet_sessions{status="closed",session_type="unknown"} 2',
    ]);
    const shown = renderedLines("proxynet_sessions", {
      sessions: buildSessions([], { ...failing, failedListed: true }),
    });
    expect(shown).toContain('proxynet_sessions{status="error",session_type="https"} 0');
  });

  test("of a node are counted by status, and their bytes are added up", () => {
    const nodes = [null, { id: "node_1", counts: { active: 3, error: 1 }, sentBytes: 1e12, receivedBytes: 5 }];
    expect(
      renderedLines("proxynet_", { sessions: buildSessions(nodes) }).filter((line) => line.includes("node_1")),
    ).toEqual([
      'proxynet_node_sessions{node_id="node_1",status="active"} 3',
      'proxynet_node_sessions{node_id="node_1",status="connecting"} 0',
      'proxynet_node_sessions{node_id="node_1",status="closed"} 0',
      'proxynet_node_sessions{node_id="node_1",status="error"} 1',
      'proxynet_node_sessions{node_id="node_1",status="timeout"} 0',
      'proxynet_session_sent_bytes_total{node_id="node_1"} 1000000000000',
      'proxynet_session_received_bytes_total{node_id="node_1"} 5',
    ]);
  });

  test("lose gauges, but not counters and histograms, when the walk is stale", () => {
    const duration = { counts: new Float64Array(11), count: 1, sum: 2 };
    const sessions = buildSessions([{ id: "node_1", sentBytes: 1 }], {
      countries: new Map([["DE", 1]]),
      durations: [duration],
    });
    const names = renderedLines("proxynet_", { sessions }, { now: STALE_AFTER_MS + 1 }).map(
      (line) => line.split("{")[0],
    );
    expect([...new Set(names)]).toEqual([
      "proxynet_session_duration_seconds_bucket",
      "proxynet_session_duration_seconds_sum",
      "proxynet_session_duration_seconds_count",
      "proxynet_session_sent_bytes_total",
      "proxynet_session_received_bytes_total",
    ]);
  });

  test("have a series for each of the largest customers; the rest, and a customer called other, is other", () => {
    const customers = [
      ["other", 9],
      ["cust_a", 5],
      ["cust_b", 3],
      ["cust_c", 1],
    ].map(([customerId, sessions]) => ({ customerId: String(customerId), sessions: Number(sessions) }));
    const shown = (topCustomers: number) =>
      renderedLines("proxynet_customer", { sessions: buildSessions([], { customers }) }, { options: { topCustomers } });
    expect(shown(2)).toEqual([
      'proxynet_customer_sessions{customer_id="cust_a"} 5',
      'proxynet_customer_sessions{customer_id="cust_b"} 3',
      'proxynet_customer_sessions{customer_id="other"} 10',
    ]);
    expect(shown(0)).toEqual(['proxynet_customer_sessions{customer_id="other"} 18']);
  });

  test("have no series other if every customer has one", () => {
    const sessions = buildSessions([], { customers: [{ customerId: "cust_a", sessions: 5 }] });
    expect(renderedLines("proxynet_customer", { sessions })).toEqual([
      'proxynet_customer_sessions{customer_id="cust_a"} 5',
    ]);
  });

  test("have durations in a cumulative histogram with float bounds", () => {
    const counts = Float64Array.from([1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3]);
    const sessions = buildSessions([], { durations: [{ counts, count: 4, sum: 200_010.5 }] });
    const bounds = [
      "1.0",
      "5.0",
      "15.0",
      "60.0",
      "300.0",
      "900.0",
      "1800.0",
      "3600.0",
      "14400.0",
      "43200.0",
      "86400.0",
    ];
    expect(renderedLines("proxynet_session_duration", { sessions })).toEqual([
      ...bounds.map(
        (bound, index) =>
          `proxynet_session_duration_seconds_bucket{session_type="socks5",le="${bound}"} ${counts[index]}`,
      ),
      'proxynet_session_duration_seconds_bucket{session_type="socks5",le="+Inf"} 4',
      'proxynet_session_duration_seconds_sum{session_type="socks5"} 200010.5',
      'proxynet_session_duration_seconds_count{session_type="socks5"} 4',
    ]);
  });
});

test("OpenMetrics headers name counters without the suffix, and state the unit with which the name ends", () => {
  const exposition = render(
    new NetworkRenderer(),
    renderInput(
      { sessions: buildSessions([{ id: "node_1", sentBytes: 7 }]) },
      { now: STALE_AFTER_MS + 1, options: { deny: new Set(["proxynet_session_received_bytes_total"]) } },
    ),
  );
  expect(textOf(exposition, "openmetrics")).toBe(`\
# TYPE proxynet_session_sent_bytes counter
# UNIT proxynet_session_sent_bytes bytes
# HELP proxynet_session_sent_bytes Bytes sent by the node's sessions, as observed in the session list.
proxynet_session_sent_bytes_total{node_id="node_1"} 7
`);
});

test("a denied family is not exported, and a collector that only it needs does not run", () => {
  const deny = new Set(["proxynet_nodes"]);
  expect(renderedLines("proxynet_nodes", { fleet: buildFleet([berlin]) }, { options: { deny } })).toEqual([]);
  expect([...neededCollectors(deny)]).toEqual(["nodes", "details", "sessions", "stats", "hourly"]);
  const usage = new Set(NETWORK_FAMILIES.filter(({ source }) => source === "details").map(({ name }) => name));
  expect(neededCollectors(usage).has("details")).toBe(false);
});

test("family names are unique", () => {
  expect(new Set(networkFamilyNames()).size).toBe(networkFamilyNames().length);
});
