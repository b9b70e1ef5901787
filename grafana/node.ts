import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { NODE_STATUSES } from "../src/model/node.ts";
import { OPEN_STATES } from "../src/model/remediation/episode.ts";
import {
  alertAnnotation,
  annotation,
  createDashboard,
  explainLink,
  locationVariables,
  nodeVariable,
  UIDS,
} from "./dashboard.ts";
import { EPISODE_NUMBERS, STATUS_NUMBERS, steps, USAGE_STEPS } from "./palette.ts";
import { columns, NODE_COLUMNS, stacked, stat, stateTimeline, table, timeSeries } from "./panel.ts";
import { nodeBytesPerSecond, ON_NODE, selector, stateNumber, WALKS_RESOLUTION } from "./query.ts";

/** The dashboard of one node: its data, its episodes and the actions on it. */
export const nodeDashboard = (): DashboardBuilder =>
  createDashboard({
    uid: UIDS.node,
    title: "Proxy node",
    description: "One node: its data, its episodes and the actions on it.",
    from: "now-24h",
    variables: [...locationVariables(), nodeVariable()],
    annotations: [...annotations(), alertAnnotation()],
    links: [explainLink()],
    overview: identityPanels(),
    rows: { Health: healthPanels(), Usage: usagePanels(), Load: loadPanels() },
  });

const onNode = (family: string, ...matchers: readonly string[]): string => selector(family, ON_NODE, ...matchers);

/** Grafana queries annotations once a minute, so the range includes what began and ended in between. */
const recently = (series: string): string => `max_over_time(${series}[1m])`;
/** Long enough to contain the last sample before a boot. */
const BOOT_WINDOW = "[2m]";

const annotations = () => [
  annotation({
    name: "Actions",
    color: "blue",
    query: { expr: recently(onNode("proxywarden_node_episode", 'state="acting"')) },
    title: "{{action}}",
    text: "{{action}} by the policy {{policy}}, while the step is in progress",
  }),
  annotation({
    name: "Episodes",
    color: "orange",
    query: { expr: `max by (node_id, policy) (${recently(onNode("proxywarden_node_episode"))})` },
    title: "Episode",
    text: "unhealthy under the policy {{policy}}",
  }),
  annotation({
    name: "Not online",
    color: "red",
    query: { expr: `${recently(onNode("proxynet_node_status", 'status!="online"'))} == 1` },
    title: "{{status}}",
    text: "the service reports the node as {{status}}",
  }),
  annotation({
    name: "Boots",
    color: "purple",
    query: { expr: `resets(${onNode("proxynet_node_uptime_seconds")}${BOOT_WINDOW}) > 0` },
    title: "Boot",
    text: "the uptime fell: the node was booted, by proxywarden or otherwise, or is offline and the service states 0",
  }),
];

const small = { width: 4, height: 4 };

const plainStat = (title: string, description: string, unit: string, expr: string) =>
  stat({ ...small, title, description, unit, queries: [{ expr }] }).thresholds(steps("text"));

const identityPanels = () => [
  table({
    width: 12,
    height: 4,
    title: "Identity",
    description: "Labels of the node that export.node_labels allows.",
    unit: "none",
    queries: [{ expr: onNode("proxynet_node_info"), shape: "table" }],
  }).transformations(
    columns({
      ...NODE_COLUMNS,
      ip_address: "Address",
    }),
  ),
  stat({
    ...small,
    title: "Current status",
    description: "Status of the node, as reported by the service.",
    unit: "none",
    queries: [{ expr: statusNumber() }],
  }).mappings([STATUS_NUMBERS]),
  plainStat(
    "Last seen",
    "Time at which the service last saw the node, by the service's clock.",
    "dateTimeFromNow",
    `${onNode("proxynet_node_last_seen_timestamp_seconds")} * 1000`,
  ),
  plainStat("Uptime now", "Uptime of the node, in whole hours.", "s", onNode("proxynet_node_uptime_seconds")),
  plainStat(
    "Details read",
    "When CPU, memory and disk usage of the node were last read.",
    "dateTimeFromNow",
    `${onNode("proxynet_node_detail_timestamp_seconds")} * 1000`,
  ),
  plainStat(
    "Record changed",
    "When the node record was last updated, as reported by the service.",
    "dateTimeFromNow",
    `${onNode("proxynet_node_updated_timestamp_seconds")} * 1000`,
  ),
  plainStat(
    "Created",
    "When the node was created.",
    "dateTimeAsIso",
    `${onNode("proxynet_node_created_timestamp_seconds")} * 1000`,
  ),
  plainStat(
    "Sessions",
    "Sessions on the node, as reported in its record.",
    "short",
    onNode("proxynet_node_active_sessions"),
  ),
  plainStat(
    "Bandwidth",
    "Bandwidth of the node, as reported in its record. The service does not define the period.",
    "decbytes",
    onNode("proxynet_node_bandwidth_bytes"),
  ),
];

const statusNumber = (): string =>
  stateNumber("node_id", NODE_STATUSES, (status) => onNode("proxynet_node_status", `status="${status}"`));

const episodeNumber = (): string =>
  stateNumber("policy", OPEN_STATES, (state) => onNode("proxywarden_node_episode", `state="${state}"`));

const healthPanels = () => [
  stateTimeline({
    width: 24,
    height: 5,
    title: "Status",
    empty: "The node was not listed in the time range",
    description: "Status of the node over time, as reported by the service.",
    unit: "none",
    queries: [{ expr: statusNumber(), legend: "status" }],
  }).mappings([STATUS_NUMBERS]),
  stateTimeline({
    width: 24,
    height: 5,
    title: "Episodes",
    empty: "No open episode in the time range",
    description:
      "State of the node's open episode by policy. firing: the next step waits until nothing holds it. acting: an action is in progress. recovering: healthy again, but not yet for clear_for. probation: after a quarantine. `proxywarden explain` also shows what happened between two scrapes.",
    unit: "none",
    queries: [{ expr: episodeNumber(), legend: "{{policy}}" }],
  }).mappings([EPISODE_NUMBERS]),
  timeSeries({
    width: 12,
    height: 7,
    title: "Not seen for",
    description:
      "Time since the service last saw the node, by Prometheus' clock. A difference between the clocks appears as an offset.",
    unit: "s",
    queries: [{ expr: `time() - ${onNode("proxynet_node_last_seen_timestamp_seconds")}`, legend: "not seen for" }],
  }),
  timeSeries({
    width: 12,
    height: 7,
    title: "Uptime",
    description: "Uptime of the node. A drop: the node was booted, or is offline and the service states 0.",
    unit: "s",
    queries: [{ expr: onNode("proxynet_node_uptime_seconds"), legend: "uptime" }],
  }),
];

const SHARES = { cpu: "CPU", memory: "Memory", disk: "Disk" } as const;

const usagePanels = () =>
  Object.entries(SHARES).map(([resource, name]) =>
    timeSeries({
      width: 8,
      height: 8,
      title: name,
      description: `${name} usage. Each read costs an API call, so the value changes only every few minutes.`,
      unit: "percentunit",
      queries: [{ expr: onNode(`proxynet_node_${resource}_usage_ratio`), legend: name }],
    })
      .max(1)
      .thresholds(USAGE_STEPS),
  );

const loadPanels = () => [
  stacked({
    width: 8,
    height: 8,
    title: "Sessions by status",
    empty: "No sessions",
    description: "Sessions on the node, from the session list.",
    unit: "short",
    queries: [{ expr: onNode("proxynet_node_sessions"), legend: "{{status}}" }],
  }),
  timeSeries({
    width: 8,
    height: 8,
    title: "Traffic",
    empty: "No walk of the session list ended in the range",
    description: `Bytes per second sent and received by the node's sessions. ${WALKS_RESOLUTION}`,
    unit: "Bps",
    queries: [nodeBytesPerSecond("sent"), nodeBytesPerSecond("received")],
  }),
  timeSeries({
    width: 8,
    height: 8,
    title: "Node record",
    description: "Sessions and bandwidth from the node's own record.",
    unit: "short",
    queries: [
      { expr: onNode("proxynet_node_active_sessions"), legend: "sessions" },
      { expr: onNode("proxynet_node_bandwidth_bytes"), legend: "bandwidth" },
    ],
  }).overrideByName("bandwidth", [
    { id: "unit", value: "decbytes" },
    { id: "custom.axisPlacement", value: "right" },
  ]),
];
