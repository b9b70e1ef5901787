import { NONE_STEPS, steps, truth } from "./palette.ts";
import { bars, stacked, stat, stateTimeline, timeSeries } from "./panel.ts";
import { pick } from "./query.ts";

const third = { width: 8, height: 8 };
const half = { width: 12, height: 8 };

const succeeded = pick("proxywarden_collect_last_success_timestamp_seconds");
const interval = pick("proxywarden_plan_interval_seconds");
const fresh = pick("proxywarden_plan_fresh_seconds");

/** How fresh what is seen is, collector by collector. */
export const collectPanels = () => [
  timeSeries({
    ...third,
    title: "Age over the age that counts as fresh",
    description:
      "Time since each collector last succeeded, over the age up to which its data count as fresh. Above 1, they leave the page.",
    unit: "none",
    queries: [{ expr: `(time() - ${succeeded}) / on (instance, collector) ${fresh}`, legend: "{{collector}}" }],
  }).thresholds(steps("green", [1, "red"])),
  timeSeries({
    ...third,
    title: "Age",
    description: "Time since each collector last succeeded.",
    unit: "s",
    queries: [{ expr: `time() - ${succeeded}`, legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Planned interval",
    description:
      "How often each collector runs, or, for details, how long a round over all nodes takes, by the plan in force.",
    unit: "s",
    queries: [{ expr: interval, legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Stretch",
    description: "Planned interval over the one wished for: 1 where the limits carry the wish.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_plan_stretch_ratio"), legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "How long a collection takes",
    description: "The last collection of each collector, successful or not.",
    unit: "s",
    queries: [{ expr: pick("proxywarden_collect_duration_seconds"), legend: "{{collector}}" }],
  }),
  stateTimeline({
    ...third,
    title: "Complete",
    description: "Whether the last collection accounted for every record. No node is touched on half an inventory.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_collect_complete"), legend: "{{collector}}" }],
  }).mappings([truth("complete", "incomplete", 1)]),
  timeSeries({
    ...third,
    title: "Share of the list seen",
    description:
      "Share of the records of a list that the last walk has seen. Below 1 the list changes while it is walked, or the service does not show all that it counts.",
    unit: "percentunit",
    queries: [{ expr: pick("proxywarden_collect_completeness_ratio"), legend: "{{collector}}" }],
  }),
  timeSeries({
    ...third,
    title: "Age of the last complete collection",
    description:
      "Time since each collector last accounted for every record. It grows while collections are incomplete.",
    unit: "s",
    queries: [
      { expr: `time() - ${pick("proxywarden_collect_last_complete_timestamp_seconds")}`, legend: "{{collector}}" },
    ],
  }),
  timeSeries({
    ...third,
    title: "Nodes and sessions remembered",
    description:
      "Nodes that the last walk listed, nodes that only an earlier walk listed and that are not yet known to be gone, and sessions remembered between walks.",
    unit: "short",
    queries: [
      { expr: pick("proxywarden_inventory_nodes"), legend: "nodes: {{state}}" },
      { expr: pick("proxywarden_session_table_sessions"), legend: "sessions" },
    ],
  }),
  timeSeries({
    ...half,
    title: "Held by",
    description:
      "The limit that keeps a collector from what it is wished to do: 1 while it does. Nothing is drawn above 0 where all wishes are met.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_plan_bound"), legend: "{{collector}}: {{limit}}" }],
  }),
  timeSeries({
    ...half,
    title: "Age to be expected",
    description: "How old what each collector brings gets by the plan: half of it at most, and all of it at most.",
    unit: "s",
    queries: [{ expr: pick("proxywarden_plan_age_seconds"), legend: "{{collector}}: {{age}}" }],
  }),
  stacked({
    ...half,
    title: "Failures",
    description: "Collections that brought nothing or not everything, by reason; docs/metrics.md says what each means.",
    unit: "none",
    queries: [
      {
        expr: `sum by (collector, reason) (increase(${pick("proxywarden_collect_failures_total")}[$__rate_interval]))`,
        legend: "{{collector}}: {{reason}}",
      },
    ],
  }),
  timeSeries({
    ...half,
    title: "Nodes without details",
    description:
      "Nodes whose last detail reads failed, twice or more in a row, while those of others succeeded. They are read less often until a read succeeds; the log names one of them and the reason.",
    unit: "none",
    queries: [{ expr: pick("proxywarden_details_failing_nodes"), legend: "nodes" }],
  }),
  stacked({
    ...half,
    title: "Records rejected",
    description:
      "Records that were skipped, or taken in spite of an odd value; docs/metrics.md says what each reason means.",
    unit: "none",
    queries: [
      {
        expr: `sum by (collector, reason) (increase(${pick("proxywarden_records_rejected_total")}[$__rate_interval]))`,
        legend: "{{collector}}: {{reason}}",
      },
    ],
  }),
];

/** The process, and what it costs to be scraped. */
export const processPanels = () => [
  timeSeries({
    ...third,
    title: "Memory",
    description: "Resident memory of the process.",
    unit: "bytes",
    queries: [{ expr: pick("process_resident_memory_bytes"), legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "CPU",
    description: "Processors in use by the process.",
    unit: "none",
    queries: [{ expr: `rate(${pick("process_cpu_seconds_total")}[$__rate_interval])`, legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "Delay of the event loop",
    description: "How late the process gets to its work: all but 1 % of it is later by no more than this.",
    unit: "s",
    queries: [{ expr: pick("nodejs_eventloop_lag_p99_seconds"), legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "Series on the page",
    description: "Series of the proxynet families that a scrape brings.",
    unit: "short",
    queries: [{ expr: pick("proxywarden_export_series"), legend: "{{instance}}" }],
  }),
  timeSeries({
    ...third,
    title: "Rendering a snapshot",
    description:
      "How long the last rendering of a snapshot took, other work in between included. No scrape waits for it.",
    unit: "s",
    queries: [{ expr: pick("proxywarden_export_refresh_duration_seconds"), legend: "{{instance}}" }],
  }),
  stat({
    width: 4,
    height: 8,
    title: "Families dropped",
    description: "Families left out because all together passed export.series_max.",
    unit: "none",
    queries: [{ expr: `max(${pick("proxywarden_export_families_dropped")})` }],
  }).thresholds(NONE_STEPS),
  stat({
    width: 4,
    height: 8,
    title: "Labels folded",
    description:
      "Records of the last hour counted under the label value other, because the service sent more label values than the caps in docs/metrics.md allow.",
    unit: "none",
    queries: [{ expr: `sum(increase(${pick("proxywarden_labels_folded_total")}[1h]))` }],
  }).thresholds(NONE_STEPS),
  bars({
    width: 4,
    height: 8,
    title: "Clock skew",
    description: "How far the clock of the service is ahead of the daemon's.",
    unit: "s",
    queries: [{ expr: pick("proxywarden_service_clock_skew_seconds"), legend: "{{instance}}", shape: "now" }],
  }),
  stacked({
    width: 12,
    height: 8,
    title: "Refused by the web server",
    description: "Requests and connections that the daemon's own web server refused, by why.",
    unit: "none",
    queries: [
      {
        expr: `sum by (reason) (increase(${pick("proxywarden_web_refusals_total")}[$__rate_interval]))`,
        legend: "{{reason}}",
      },
    ],
  }),
  stat({
    width: 4,
    height: 8,
    title: "Web configuration",
    description:
      "Whether the file of TLS and users was read without an error when it changed last. Absent without one.",
    unit: "none",
    queries: [{ expr: `min(${pick("proxywarden_web_config_last_reload_successful")})` }],
  }).mappings([truth("in force", "refused", 1)]),
  stat({
    width: 4,
    height: 8,
    title: "Certificate ends in",
    description: "Until the certificate of the daemon's own web server ends. Absent without TLS.",
    unit: "s",
    queries: [{ expr: `min(${pick("proxywarden_web_certificate_expiration_timestamp_seconds")} - time())` }],
  }).thresholds(steps("red", [604_800, "text"])),
];
