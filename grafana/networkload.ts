import { steps, USAGE_STEPS } from "./palette.ts";
import { bars, stacked, stat, timeSeries } from "./panel.ts";
import { AT_PLACE, pick, placed, RATE_WINDOW } from "./query.ts";
import { bytesPerSecond, SESSION_STEP } from "./traffic.ts";

const third = { width: 8, height: 8 };
const half = { width: 12, height: 8 };

const durationQuantile = (quantile: number): string =>
  `histogram_quantile(${quantile}, sum by (le) (rate(${pick("proxynet_session_duration_seconds_bucket")}${RATE_WINDOW})))`;

/** Sessions: how many, of whom, and how they end. */
export const sessionPanels = () => [
  stacked({
    ...third,
    title: "Sessions by status",
    description:
      "Sessions of the whole network, counted in the session list. Where that list never showed a failed one, error and timeout are not known, and absent.",
    unit: "short",
    queries: [{ expr: `sum by (status) (${pick("proxynet_sessions")})`, legend: "{{status}}" }],
  }),
  stacked({
    ...third,
    title: "Sessions by type",
    description: "Sessions of the whole network by protocol, in whatever status.",
    unit: "short",
    queries: [{ expr: `sum by (session_type) (${pick("proxynet_sessions")})`, legend: "{{session_type}}" }],
  }),
  timeSeries({
    ...third,
    title: "Failed sessions",
    description: "Share of the sessions in the list that ended by error or timeout, by protocol.",
    unit: "percentunit",
    queries: [
      {
        expr: `sum by (session_type) (${pick("proxynet_sessions", 'status=~"error|timeout"')}) / sum by (session_type) (${pick("proxynet_sessions")})`,
        legend: "{{session_type}}",
      },
    ],
  }),
  stacked({
    ...third,
    title: "Sessions by country",
    description: "Sessions of the ten countries shown with most of them, counted in the session list.",
    unit: "short",
    queries: [{ expr: `topk(10, ${pick("proxynet_country_sessions", AT_PLACE[1])})`, legend: "{{country}}" }],
  }),
  timeSeries({
    ...third,
    title: "Duration of sessions",
    description: "Of the sessions that left the list: how long half, and all but 5 %, had lasted when last seen.",
    unit: "s",
    queries: [
      { expr: durationQuantile(0.5), legend: "half", step: SESSION_STEP },
      { expr: durationQuantile(0.95), legend: "95 %", step: SESSION_STEP },
    ],
  }),
  bars({
    ...third,
    title: "Top customers",
    description: "The ten customers with most sessions now. export.top_customers says how many are told apart at all.",
    unit: "short",
    queries: [
      {
        expr: `sort_desc(topk(10, ${pick("proxynet_customer_sessions", 'customer_id!="other"')}))`,
        legend: "{{customer_id}}",
        shape: "now",
      },
    ],
  }),
];

/** What flows, and through which nodes. */
export const trafficPanels = () => [
  stacked({
    ...half,
    title: "Traffic by region",
    description: "Bytes a second that sessions of each region's nodes were seen to send and to receive.",
    unit: "Bps",
    queries: [bytesPerSecond("region", "{{region}}", "sent", "received")],
  }),
  timeSeries({
    ...half,
    title: "Sent and received",
    description: "The same of all places shown, by direction.",
    unit: "Bps",
    queries: [bytesPerSecond("", "sent", "sent"), bytesPerSecond("", "received", "received")],
  }),
  timeSeries({
    ...half,
    title: "Bandwidth by region, as records state",
    description:
      "Sum of the bandwidth that each node's own record states. Over which time that counts, the service does not say.",
    unit: "decbytes",
    queries: [
      { expr: `sum by (region) (${placed(pick("proxynet_node_bandwidth_bytes"), "region")})`, legend: "{{region}}" },
    ],
  }),
  bars({
    ...half,
    title: "Busiest nodes",
    description: "The ten nodes with most sessions by their own records.",
    unit: "short",
    queries: [
      {
        expr: `sort_desc(topk(10, ${placed(pick("proxynet_node_active_sessions"), "name")}))`,
        legend: "{{name}} {{node_id}}",
        shape: "now",
      },
    ],
  }),
];

const USAGES = { cpu: "CPU", memory: "Memory", disk: "Disk" } as const;

const usagePanel = ([usage, name]: readonly [string, string]) => {
  const values = placed(pick(`proxynet_node_${usage}_usage_ratio`), "region");
  return timeSeries({
    ...third,
    title: `${name} in use`,
    description: `Of the nodes at the places shown, as far as their details are fresh: the half, the 95 % and the one with most ${name} in use.`,
    unit: "percentunit",
    queries: [
      { expr: `quantile(0.5, ${values})`, legend: "half of the nodes under" },
      { expr: `quantile(0.95, ${values})`, legend: "95 % under" },
      { expr: `max(${values})`, legend: "most" },
    ],
  })
    .max(1)
    .thresholds(USAGE_STEPS);
};

/** How full the nodes are. */
export const capacityPanels = () => Object.entries(USAGES).map(usagePanel);

const counted = (title: string, description: string, unit: string, family: string, over: "sum" | "avg" = "sum") =>
  stat(
    { width: 4, height: 4, title, description, unit, queries: [{ expr: `${over}(${pick(family)})` }] },
    { past: true },
  ).thresholds(steps("text"));

/** The service's own statistics, to hold against what the lists show. */
export const servicePanels = () => [
  counted(
    "Active",
    "Active sessions, as the statistics of the service state.",
    "short",
    "proxynet_stats_active_sessions",
  ),
  counted(
    "Sessions today",
    "Sessions of today, as the service counts its day.",
    "short",
    "proxynet_stats_sessions_today",
  ),
  counted(
    "Bandwidth today",
    "Bandwidth of today, stated in gigabytes by the service.",
    "decbytes",
    "proxynet_stats_bandwidth_today_bytes",
  ),
  counted(
    "Peak",
    "Most sessions at one time, as the service states.",
    "short",
    "proxynet_stats_peak_concurrent_sessions",
  ),
  counted(
    "Mean duration",
    "Mean duration of a session, as the service states.",
    "s",
    "proxynet_stats_session_duration_average_seconds",
    "avg",
  ),
  stat({
    width: 4,
    height: 4,
    title: "Last whole hour",
    description: "Start of the last whole hour that the service reports: what the panels of the hour are about.",
    unit: "dateTimeAsLocalNoDateIfToday",
    queries: [{ expr: `max(${pick("proxynet_hourly_timestamp_seconds")}) * 1000` }],
  }).thresholds(steps("text")),
  counted("Active in the hour", "Active sessions of the last whole hour.", "short", "proxynet_hourly_active_sessions"),
  counted("New in the hour", "Sessions that began in the last whole hour.", "short", "proxynet_hourly_new_sessions"),
  counted(
    "Bandwidth of the hour",
    "Bandwidth of the last whole hour, stated in gigabytes by the service.",
    "decbytes",
    "proxynet_hourly_bandwidth_bytes",
  ),
  bars({
    width: 6,
    height: 8,
    title: "Countries",
    description: "Sessions of the countries with most, as the service states.",
    unit: "short",
    queries: [
      {
        expr: `sort_desc(${pick("proxynet_stats_country_sessions", AT_PLACE[1])})`,
        legend: "{{country}}",
        shape: "now",
      },
    ],
  }),
  bars({
    width: 6,
    height: 8,
    title: "Protocols",
    description: "Sessions of the protocols with most, as the service states.",
    unit: "short",
    queries: [{ expr: `sort_desc(${pick("proxynet_stats_protocol_sessions")})`, legend: "{{protocol}}", shape: "now" }],
  }),
];
