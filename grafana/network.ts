import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { actionAnnotation, alertAnnotation, createDashboard, locationVariables, UIDS } from "./dashboard.ts";
import { healthPanels, unhealthyNodePanels } from "./network-health.ts";
import { capacityPanels, sessionPanels, statisticsPanels, trafficPanels } from "./network-load.ts";
import { NONE_STEPS, ONLINE_STEPS, steps } from "./palette.ts";
import { stat } from "./panel.ts";
import { AT_LOCATION, bytesPerSecond, ifCurrent, selector, WALKS_RESOLUTION } from "./query.ts";

/** The dashboard of the network: health, unhealthy nodes, sessions, traffic and capacity. */
export const networkDashboard = (): DashboardBuilder =>
  createDashboard({
    uid: UIDS.network,
    title: "Proxy network overview",
    description: "Health of the network by region and country, sessions and traffic, and unhealthy nodes.",
    from: "now-6h",
    variables: locationVariables(),
    annotations: [alertAnnotation(), actionAnnotation()],
    overview: overviewPanels(),
    rows: {
      Health: healthPanels(),
      "Unhealthy nodes": unhealthyNodePanels(),
      Sessions: sessionPanels(),
      Traffic: trafficPanels(),
      Capacity: capacityPanels(),
      "Service statistics": statisticsPanels(),
    },
  });

const size = { width: 4, height: 4 };

const nodes = (...matchers: readonly string[]): string => selector("proxynet_nodes", ...AT_LOCATION, ...matchers);
const ACTIVE_SESSIONS = selector("proxynet_sessions", 'status="active"');
const OPEN_EPISODES = selector("proxywarden_episodes", 'state!~"pending|given_up"');
const RECORDED_TRAFFIC = selector("region_country:proxynet_session_sent_bytes:rate", ...AT_LOCATION);
const traffic = bytesPerSecond("", undefined, "sent", "received");

const overviewPanels = () => [...nodePanels(), ...loadPanels()];

const nodePanels = () => [
  stat(
    {
      ...size,
      title: "Nodes online",
      description:
        "Share of the selected nodes with fresh records that are online. Nodes in maintenance count as not online.",
      unit: "percentunit",
      queries: [{ expr: ifCurrent(`sum(${nodes('status="online"')}) / sum(${nodes()})`, nodes()) }],
    },
    { history: true },
  ).thresholds(ONLINE_STEPS),
  stat(
    {
      ...size,
      title: "Nodes",
      description: "Selected nodes with fresh records, in any status. No value unless the list was read recently.",
      unit: "none",
      queries: [{ expr: ifCurrent(`sum(${nodes()})`, nodes()) }],
    },
    { history: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Nodes offline",
      description: "Selected nodes with fresh records that are offline.",
      unit: "none",
      queries: [{ expr: ifCurrent(`sum(${nodes('status="offline"')})`, nodes()) }],
    },
    { history: true },
  ).thresholds(NONE_STEPS),
];

const loadPanels = () => [
  stat(
    {
      ...size,
      title: "Active sessions",
      description: "Active sessions of the whole network, from the session list.",
      unit: "short",
      queries: [{ expr: ifCurrent(`sum(${ACTIVE_SESSIONS})`, ACTIVE_SESSIONS) }],
    },
    { history: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Traffic",
      empty: "No recent walk",
      description: `Bytes per second sent and received by sessions of the selected regions and countries. ${WALKS_RESOLUTION}`,
      unit: "Bps",
      queries: [{ expr: ifCurrent(traffic.expr, RECORDED_TRAFFIC) }],
    },
    { history: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Open episodes",
      empty: "No policies",
      description: "Nodes of the whole network with an open episode. The dashboard Proxywarden shows the actions.",
      unit: "none",
      queries: [{ expr: ifCurrent(`sum(${OPEN_EPISODES})`, OPEN_EPISODES) }],
    },
    { history: true },
  ).thresholds(steps("green", [1, "orange"])),
];
