import { steps, USAGE_STEPS } from "./palette.ts";
import { bars, stacked, stat, timeSeries } from "./panel.ts";
import {
  AT_LOCATION,
  bytesPerSecond,
  ifCurrent,
  overWalks,
  selector,
  WALKS_RESOLUTION,
  withNodeLabels,
} from "./query.ts";

const third = { width: 8, height: 8 };
const half = { width: 12, height: 8 };

const ENDED = selector("instance:proxynet_session_duration_seconds_bucket:increase5m");

const durationQuantile = (quantile: number): string =>
  `histogram_quantile(${quantile}, sum by (le) (\n${overWalks((range) => `sum_over_time(${ENDED}${range})`)}\n))`;

/** Sessions by status, type, country and customer. */
export const sessionPanels = () => [
  stacked({
    ...third,
    title: "Sessions by status",
    description:
      "Sessions of the whole network, from the session list. Error and timeout are absent until the list has included a failed session.",
    unit: "short",
    queries: [{ expr: `sum by (status) (${selector("proxynet_sessions")})`, legend: "{{status}}" }],
  }),
  stacked({
    ...third,
    title: "Sessions by type",
    description: "Sessions of the whole network by type, in any status.",
    unit: "short",
    queries: [{ expr: `sum by (session_type) (${selector("proxynet_sessions")})`, legend: "{{session_type}}" }],
  }),
  timeSeries({
    ...third,
    title: "Failed sessions",
    empty: "The list has never included a failed session",
    description: "Share of the listed sessions that ended with an error or timed out, by type.",
    unit: "percentunit",
    queries: [
      {
        expr: `sum by (session_type) (${selector("proxynet_sessions", 'status=~"error|timeout"')}) / sum by (session_type) (${selector("proxynet_sessions")})`,
        legend: "{{session_type}}",
      },
    ],
  }),
  stacked({
    ...third,
    title: "Sessions by country",
    description: "Sessions of the ten countries with the most sessions, among those selected, from the session list.",
    unit: "short",
    queries: [{ expr: `topk(10, ${selector("proxynet_country_sessions", AT_LOCATION[1])})`, legend: "{{country}}" }],
  }),
  timeSeries({
    ...third,
    title: "Session duration",
    empty: "No session ended",
    description: `Duration of sessions that ended, as last observed: median and 95th percentile. ${WALKS_RESOLUTION}`,
    unit: "s",
    queries: [
      { expr: durationQuantile(0.5), legend: "median" },
      { expr: durationQuantile(0.95), legend: "95th percentile" },
    ],
  }),
  bars({
    ...third,
    title: "Top customers",
    description: "The ten customers with the most sessions. export.top_customers limits how many are exported.",
    unit: "short",
    queries: [
      {
        expr: `sort_desc(topk(10, ${selector("proxynet_customer_sessions", 'customer_id!="other"')}))`,
        legend: "{{customer_id}}",
        shape: "now",
      },
    ],
  }),
];

/** Traffic and bandwidth, and the busiest nodes. */
export const trafficPanels = () => [
  stacked({
    ...half,
    title: "Traffic by region",
    empty: "No walk of the session list ended in the range",
    description: `Bytes per second sent and received by sessions, by region of the node. ${WALKS_RESOLUTION}`,
    unit: "Bps",
    queries: [bytesPerSecond("region", "{{region}}", "sent", "received")],
  }),
  timeSeries({
    ...half,
    title: "Sent and received",
    empty: "No walk of the session list ended in the range",
    description: `Bytes per second of the selected regions and countries, by direction. ${WALKS_RESOLUTION}`,
    unit: "Bps",
    queries: [bytesPerSecond("", "sent", "sent"), bytesPerSecond("", "received", "received")],
  }),
  timeSeries({
    ...half,
    title: "Reported bandwidth by region",
    description: "Sum of the bandwidth in the node records. The service does not define the period.",
    unit: "decbytes",
    queries: [
      {
        expr: `sum by (region) (${withNodeLabels(selector("proxynet_node_bandwidth_bytes"), "region")})`,
        legend: "{{region}}",
      },
    ],
  }),
  bars({
    ...half,
    title: "Busiest nodes",
    description: "The ten nodes with the most sessions, as reported in their records.",
    unit: "short",
    queries: [
      {
        expr: `sort_desc(topk(10, ${withNodeLabels(selector("proxynet_node_active_sessions"), "name")}))`,
        legend: "{{name}} {{node_id}}",
        shape: "now",
      },
    ],
  }),
];

const USAGES = { cpu: "CPU", memory: "Memory", disk: "Disk" } as const;

const usagePanel = ([usage, name]: readonly [string, string]) => {
  const values = withNodeLabels(selector(`proxynet_node_${usage}_usage_ratio`), "region");
  return timeSeries({
    ...third,
    title: `${name} usage`,
    description: `${name} usage of the selected nodes with fresh details: median, 95th percentile and maximum.`,
    unit: "percentunit",
    queries: [
      { expr: `quantile(0.5, ${values})`, legend: "median" },
      { expr: `quantile(0.95, ${values})`, legend: "95th percentile" },
      { expr: `max(${values})`, legend: "maximum" },
    ],
  })
    .max(1)
    .thresholds(USAGE_STEPS);
};

/** CPU, memory and disk usage of the nodes. */
export const capacityPanels = () => Object.entries(USAGES).map(usagePanel);

const small = { width: 4, height: 4 };
const NOT_REPORTED = "Not reported yet";

const statisticPanel = (
  title: string,
  description: string,
  unit: string,
  family: string,
  over: "sum" | "avg" = "sum",
) =>
  stat(
    {
      ...small,
      title,
      empty: NOT_REPORTED,
      description,
      unit,
      queries: [{ expr: ifCurrent(`${over}(${selector(family)})`, selector(family)) }],
    },
    { history: true },
  ).thresholds(steps("text"));

/** The service's own statistics, for comparison with the lists. */
export const statisticsPanels = () => [...dayStatistics(), ...hourStatistics(), ...largestPanels()];

const dayStatistics = () => [
  statisticPanel(
    "Active",
    "Active sessions, as reported by the service's statistics.",
    "short",
    "proxynet_stats_active_sessions",
  ),
  statisticPanel(
    "Sessions today",
    "Sessions today, as counted by the service.",
    "short",
    "proxynet_stats_sessions_today",
  ),
  statisticPanel(
    "Bandwidth today",
    "Today's bandwidth, reported in gigabytes by the service.",
    "decbytes",
    "proxynet_stats_bandwidth_today_bytes",
  ),
  statisticPanel(
    "Peak",
    "Peak number of concurrent sessions, as reported by the service.",
    "short",
    "proxynet_stats_peak_concurrent_sessions",
  ),
  statisticPanel(
    "Mean duration",
    "Mean session duration, as reported by the service.",
    "s",
    "proxynet_stats_session_duration_average_seconds",
    "avg",
  ),
];

const hourStatistics = () => [
  stat({
    ...small,
    title: "Last full hour",
    empty: NOT_REPORTED,
    description: "Start of the last full hour that the service reports. The hourly panels refer to it.",
    unit: "dateTimeAsLocalNoDateIfToday",
    queries: [{ expr: `max(${selector("proxynet_hourly_timestamp_seconds")}) * 1000` }],
  }).thresholds(steps("text")),
  statisticPanel(
    "Active in the hour",
    "Active sessions in the last full hour.",
    "short",
    "proxynet_hourly_active_sessions",
  ),
  statisticPanel(
    "New in the hour",
    "Sessions that began in the last full hour.",
    "short",
    "proxynet_hourly_new_sessions",
  ),
  statisticPanel(
    "Bandwidth in the hour",
    "Bandwidth in the last full hour, reported in gigabytes by the service.",
    "decbytes",
    "proxynet_hourly_bandwidth_bytes",
  ),
];

const largestPanels = () => [
  bars({
    width: 6,
    height: 8,
    title: "Countries",
    description: "Countries with the most sessions, as reported by the service.",
    unit: "short",
    queries: [
      {
        expr: `sort_desc(${selector("proxynet_stats_country_sessions", AT_LOCATION[1])})`,
        legend: "{{country}}",
        shape: "now",
      },
    ],
  }),
  bars({
    width: 6,
    height: 8,
    title: "Protocols",
    description: "Protocols with the most sessions, as reported by the service.",
    unit: "short",
    queries: [
      { expr: `sort_desc(${selector("proxynet_stats_protocol_sessions")})`, legend: "{{protocol}}", shape: "now" },
    ],
  }),
];
