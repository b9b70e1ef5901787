import { type DashboardBuilder, RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { NODE_STATUSES } from "../src/model/node.ts";
import { OPEN_STATES } from "../src/model/remediation/episode.ts";
import { annotation, board, nodeVariable, placeVariables, UIDS } from "./board.ts";
import { EPISODE_NUMBERS, STATUS_NUMBERS, steps, USAGE_STEPS } from "./palette.ts";
import { columns, stacked, stat, stateTimeline, table, timeSeries } from "./panel.ts";
import { ON_NODE, pick, rate, stateNumber } from "./query.ts";
import { SESSION_STEP } from "./traffic.ts";

/** One node: all that is known of it, what was wrong with it, and what was done. */
export function nodeBoard(): DashboardBuilder {
  const dashboard = board({
    uid: UIDS.node,
    title: "Proxy node",
    description: "All that is known of one node, what was wrong with it, and what was done about it.",
    from: "now-24h",
  });
  for (const variable of [...placeVariables(), nodeVariable()]) dashboard.withVariable(variable);
  for (const mark of marks()) dashboard.annotation(mark);
  for (const panel of identity()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Health"));
  for (const panel of health()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Usage"));
  for (const panel of usage()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Load"));
  for (const panel of load()) dashboard.withPanel(panel);
  return dashboard;
}

const onNode = (family: string, ...matchers: readonly string[]): string => pick(family, ON_NODE, ...matchers);

/** Grafana asks for marks a minute apart: what came and went in between is looked back for. */
const lately = (series: string): string => `max_over_time(${series}[1m])`;
/** Two minutes hold the last sample before a boot as well. */
const BOOT_WINDOW = "[2m]";

const marks = () => [
  annotation({
    name: "Actions",
    color: "blue",
    query: { expr: lately(onNode("proxywarden_node_episode", 'state="acting"')) },
    title: "{{action}}",
    text: "{{action}} by the policy {{policy}}, until it is seen to have worked or not",
  }),
  annotation({
    name: "Episodes",
    color: "orange",
    query: { expr: `max by (node_id, policy) (${lately(onNode("proxywarden_node_episode"))})` },
    title: "Episode",
    text: "unhealthy by the policy {{policy}}",
  }),
  annotation({
    name: "Not online",
    color: "red",
    query: { expr: `${lately(onNode("proxynet_node_status", 'status!="online"'))} == 1` },
    title: "{{status}}",
    text: "the service gives the node as {{status}}",
  }),
  annotation({
    name: "Boots",
    color: "purple",
    query: { expr: `resets(${onNode("proxynet_node_uptime_seconds")}${BOOT_WINDOW}) > 0` },
    title: "Boot",
    text: "its uptime fell: it was booted, by us or by somebody else",
  }),
];

const small = { width: 4, height: 4 };

const plain = (title: string, description: string, unit: string, expr: string) =>
  stat({ ...small, title, description, unit, queries: [{ expr }] }).thresholds(steps("text"));

const identity = () => [
  table({
    width: 12,
    height: 4,
    title: "Who it is",
    description: "What the service calls the node, as far as export.node_labels lets it through.",
    unit: "none",
    queries: [{ expr: onNode("proxynet_node_info"), shape: "table" }],
  }).transformations(
    columns({
      node_id: "Node",
      name: "Name",
      country: "Country",
      region: "Region",
      version: "Version",
      ip_address: "Address",
    }),
  ),
  stat({
    ...small,
    title: "Status now",
    description: "The status that the service gives the node.",
    unit: "none",
    queries: [{ expr: statusNumber() }],
  }).mappings([STATUS_NUMBERS]),
  plain(
    "Last seen",
    "When the service last saw the node, on the service's clock.",
    "dateTimeFromNow",
    `${onNode("proxynet_node_last_seen_timestamp_seconds")} * 1000`,
  ),
  plain("Up for", "Uptime of the node; the service counts whole hours.", "s", onNode("proxynet_node_uptime_seconds")),
  plain(
    "Usage read",
    "When the details of the node were read: how old what is shown of CPU, memory and disk is.",
    "dateTimeFromNow",
    `${onNode("proxynet_node_detail_timestamp_seconds")} * 1000`,
  ),
  plain(
    "Record changed",
    "When the record of the node was last updated, as the service states.",
    "dateTimeFromNow",
    `${onNode("proxynet_node_updated_timestamp_seconds")} * 1000`,
  ),
  plain(
    "Created",
    "When the node was created.",
    "dateTimeAsIso",
    `${onNode("proxynet_node_created_timestamp_seconds")} * 1000`,
  ),
  plain(
    "Sessions",
    "Sessions on the node, as its own record states.",
    "short",
    onNode("proxynet_node_active_sessions"),
  ),
  plain(
    "Bandwidth",
    "Bandwidth of the node, as its record states; over which time, the service does not say.",
    "decbytes",
    onNode("proxynet_node_bandwidth_bytes"),
  ),
];

const statusNumber = (): string =>
  stateNumber("node_id", NODE_STATUSES, (status) => onNode("proxynet_node_status", `status="${status}"`));

const episodeNumber = (): string =>
  stateNumber("policy", OPEN_STATES, (state) => onNode("proxywarden_node_episode", `state="${state}"`));

const health = () => [
  stateTimeline({
    width: 24,
    height: 5,
    title: "Status",
    description: "The status that the service gave the node, over time.",
    unit: "none",
    queries: [{ expr: statusNumber(), legend: "status" }],
  }).mappings([STATUS_NUMBERS]),
  stateTimeline({
    width: 24,
    height: 5,
    title: "Episodes",
    description:
      "Where the node's open episode stood, by policy: firing waits for leave to act, acting has an action under way, recovering was healed and must stay so, probation follows a quarantine. `proxywarden explain` has every action and reason, also of what was over between two scrapes.",
    unit: "none",
    queries: [{ expr: episodeNumber(), legend: "{{policy}}" }],
  }).mappings([EPISODE_NUMBERS]),
  timeSeries({
    width: 12,
    height: 7,
    title: "Not seen for",
    description:
      "Age of the service's last sight of the node, by the clock of Prometheus: clocks that differ show as an offset.",
    unit: "s",
    queries: [{ expr: `time() - ${onNode("proxynet_node_last_seen_timestamp_seconds")}`, legend: "not seen for" }],
  }),
  timeSeries({
    width: 12,
    height: 7,
    title: "Uptime",
    description: "A line that falls is a boot.",
    unit: "s",
    queries: [{ expr: onNode("proxynet_node_uptime_seconds"), legend: "uptime" }],
  }),
];

const SHARES = { cpu: "CPU", memory: "Memory", disk: "Disk" } as const;

const usage = () =>
  Object.entries(SHARES).map(([resource, name]) =>
    timeSeries({
      width: 8,
      height: 8,
      title: name,
      description: `${name} in use. It costs a call to read, so it is read every few minutes; the line stands still in between.`,
      unit: "percentunit",
      queries: [{ expr: onNode(`proxynet_node_${resource}_usage_ratio`), legend: name }],
    })
      .max(1)
      .thresholds(USAGE_STEPS),
  );

const load = () => [
  stacked({
    width: 8,
    height: 8,
    title: "Sessions by status",
    description: "Sessions on the node, counted in the session list.",
    unit: "short",
    queries: [{ expr: onNode("proxynet_node_sessions"), legend: "{{status}}" }],
  }),
  timeSeries({
    width: 8,
    height: 8,
    title: "Traffic",
    description: "Bytes a second that the node's sessions were seen to send and to receive.",
    unit: "Bps",
    queries: (["sent", "received"] as const).map((direction) => ({
      expr: rate(`proxynet_session_${direction}_bytes_total`, ON_NODE),
      legend: direction,
      step: SESSION_STEP,
    })),
  }),
  timeSeries({
    width: 8,
    height: 8,
    title: "By its own record",
    description: "Sessions and bandwidth as the node's record states them.",
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
