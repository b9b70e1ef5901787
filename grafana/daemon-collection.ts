import { booleanMapping, NONE_STEPS, steps } from "./palette.ts";
import { bars, counts, stat, stateTimeline, timeSeries } from "./panel.ts";
import { gained, gainedWithin, selector } from "./query.ts";

const third = { width: 8, height: 8 };
const half = { width: 12, height: 8 };

const succeeded = selector("proxywarden_collect_last_success_timestamp_seconds");
const interval = selector("proxywarden_plan_interval_seconds");
const fresh = selector("proxywarden_plan_fresh_seconds");

/** Freshness of the data of each collector. */
export const collectionPanels = () => [...agePanels(), ...completenessPanels(), ...planPanels(), ...failurePanels()];

const agePanels = () => [
  timeSeries({
    ...third,
    title: "Age relative to the freshness limit",
    empty: "Nothing collected yet",
    description:
      "Time since the last success of each collector, divided by the age up to which its data is fresh. Above 1, its data is no longer exported.",
    unit: "none",
    queries: [{ expr: `(time() - ${succeeded}) / on (instance, collector) ${fresh}`, legend: "{{collector}}" }],
  }).thresholds(steps("green", [1, "red"])),
  timeSeries({
    ...third,
    title: "Age",
    empty: "Nothing collected yet",
    description: "Time since each collector last succeeded.",
    unit: "s",
    queries: [{ expr: `time() - ${succeeded}`, legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Planned interval",
    description: "Planned interval of each collector. Details: planned time to read all nodes once.",
    unit: "s",
    queries: [{ expr: interval, legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Slowdown",
    description: "Planned interval divided by requested interval. 1: the limits allow the requested interval.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_plan_stretch_ratio"), legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Collection duration",
    empty: "Nothing collected yet",
    description: "Duration of the last run of each collector, successful or not.",
    unit: "s",
    queries: [{ expr: selector("proxywarden_collect_duration_seconds"), legend: "{{collector}}" }],
  }),
];

const completenessPanels = () => [
  stateTimeline({
    ...third,
    title: "Complete",
    empty: "Nothing collected yet",
    description:
      "Whether the last run was complete. A complete walk may miss a small share of the records (nodes: safety.trust.max_missing). While the last walk of the nodes is incomplete, no node is acted on.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_collect_complete"), legend: "{{collector}}" }],
  }).mappings([booleanMapping("complete", "incomplete", 1)]),
  timeSeries({
    ...third,
    title: "Completeness of lists",
    empty: "No list read yet",
    description:
      "Share of a list's records that the last walk saw. It is below 1 if the list changes during the walk, or the service does not list all records that it counts.",
    unit: "percentunit",
    queries: [{ expr: selector("proxywarden_collect_completeness_ratio"), legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Age of the last complete collection",
    empty: "No complete collection yet",
    description: "Time since the last complete run of each collector. It grows while runs are incomplete.",
    unit: "s",
    queries: [
      { expr: `time() - ${selector("proxywarden_collect_last_complete_timestamp_seconds")}`, legend: "{{collector}}" },
    ],
  }),
  timeSeries({
    ...third,
    title: "Nodes and sessions in memory",
    description:
      "Nodes in the last walk (listed), nodes of an earlier walk that are not yet known to be gone (unlisted), and sessions kept between walks.",
    unit: "short",
    queries: [
      { expr: selector("proxywarden_inventory_nodes"), legend: "nodes: {{state}}" },
      { expr: selector("proxywarden_session_table_sessions"), legend: "sessions" },
    ],
  }),
];

const planPanels = () => [
  timeSeries({
    ...half,
    title: "Limiting factor",
    description: "Which limit slows a collector down (1). All 0: the limits allow all requested intervals.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_plan_bound"), legend: "{{collector}}: {{limit}}" }],
  }),
  timeSeries({
    ...half,
    title: "Expected age",
    description: "Expected age of each collector's data: median and maximum.",
    unit: "s",
    queries: [{ expr: selector("proxywarden_plan_age_seconds"), legend: "{{collector}}: {{age}}" }],
  }),
];

const failurePanels = () => [
  counts({
    ...half,
    title: "Failures",
    empty: "No failures",
    description: "Failed or incomplete runs by reason; docs/metrics.md explains the reasons.",
    queries: [
      { ...gained("collector, reason", "proxywarden_collect_failures_total"), legend: "{{collector}}: {{reason}}" },
    ],
  }),
  timeSeries({
    ...half,
    title: "Nodes without details",
    empty: "None",
    description:
      "Nodes whose detail reads failed at least twice in a row because they were not found, or while others succeeded. They are read less often until a read succeeds. The log names one of them and the reason.",
    unit: "none",
    queries: [{ expr: selector("proxywarden_details_failing_nodes"), legend: "nodes" }],
  }),
  counts({
    ...half,
    title: "Records rejected",
    empty: "No records rejected",
    description:
      "Records that were skipped, or accepted with an unexpected value, by reason; docs/metrics.md explains the reasons.",
    queries: [
      { ...gained("collector, reason", "proxywarden_records_rejected_total"), legend: "{{collector}}: {{reason}}" },
    ],
  }),
];

/** The process, and the cost of scrapes. */
export const processPanels = () => [...resourcePanels(), ...exportPanels(), ...connectionPanels()];

const resourcePanels = () => [
  timeSeries({
    ...third,
    title: "Memory",
    description: "Resident memory of the process.",
    unit: "bytes",
    queries: [{ expr: selector("process_resident_memory_bytes"), legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "CPU",
    description: "CPU cores used by the process.",
    unit: "none",
    queries: [{ expr: `rate(${selector("process_cpu_seconds_total")}[$__rate_interval])`, legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "Event loop delay",
    description: "Event loop delay, 99th percentile.",
    unit: "s",
    queries: [{ expr: selector("nodejs_eventloop_lag_p99_seconds"), legend: "{{instance}}" }],
  }),
];

const exportPanels = () => [
  timeSeries({
    ...third,
    title: "Exported series",
    description: "Exported series of the proxynet_* families.",
    unit: "short",
    queries: [{ expr: selector("proxywarden_export_series"), legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "Snapshot publication time",
    description:
      "Time it took to publish the last snapshot on /metrics, including other work done in the meantime. Scrapes do not wait for it.",
    unit: "s",
    queries: [{ expr: selector("proxywarden_export_refresh_duration_seconds"), legend: "{{instance}}" }],
  }),
  stat({
    width: 4,
    height: 8,
    title: "Families dropped",
    description: "Metric families that are not exported, because there are more series than export.series_max allows.",
    unit: "none",
    queries: [{ expr: `max(${selector("proxywarden_export_families_dropped")})` }],
  }).thresholds(NONE_STEPS),
  stat({
    width: 4,
    height: 8,
    title: "Labels folded",
    description:
      "Records of the last hour counted under the label value other, because the service sent more label values than the caps in docs/metrics.md allow.",
    unit: "none",
    queries: [{ expr: gainedWithin("1h", "proxywarden_labels_folded_total") }],
  }).thresholds(NONE_STEPS),
];

const connectionPanels = () => [
  bars({
    width: 4,
    height: 8,
    title: "Clock skew",
    empty: "No response from the service yet",
    description: "Time by which the service's clock is ahead of the daemon's.",
    unit: "s",
    queries: [{ expr: selector("proxywarden_service_clock_skew_seconds"), legend: "{{instance}}", shape: "now" }],
  }),
  counts({
    width: 12,
    height: 8,
    title: "Rejected by the web server",
    empty: "Nothing rejected",
    description: "Requests and connections that the daemon's web server rejected, by reason.",
    queries: [{ ...gained("reason", "proxywarden_web_refusals_total"), legend: "{{reason}}" }],
  }),
  stat({
    width: 4,
    height: 8,
    title: "Web configuration",
    empty: "No web configuration file",
    description:
      "Whether the last change to the web configuration file was loaded. If not, the previous settings stay active.",
    unit: "none",
    queries: [{ expr: `min(${selector("proxywarden_web_config_last_reload_successful")})` }],
  }).mappings([booleanMapping("active", "rejected", 1)]),
  stat({
    width: 4,
    height: 8,
    title: "Certificate expires in",
    empty: "No TLS",
    description: "Time until the certificate of the daemon's web server expires.",
    unit: "s",
    queries: [{ expr: `min(${selector("proxywarden_web_certificate_expiration_timestamp_seconds")} - time())` }],
  }).thresholds(steps("red", [604_800, "text"])),
];
