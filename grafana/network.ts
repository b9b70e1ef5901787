import { type DashboardBuilder, RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, placeVariables, UIDS } from "./board.ts";
import { healthPanels, troublePanels } from "./networkhealth.ts";
import { capacityPanels, servicePanels, sessionPanels, trafficPanels } from "./networkload.ts";
import { NONE_STEPS, ONLINE_STEPS, steps } from "./palette.ts";
import { stat } from "./panel.ts";
import { AT_PLACE, pick } from "./query.ts";
import { bytesPerSecond } from "./traffic.ts";

/** The whole network: is it well, where not, what does it carry, and for whom. */
export function networkBoard(): DashboardBuilder {
  const dashboard = board({
    uid: UIDS.network,
    title: "Proxy network overview",
    description: "Health of the network by region and country, sessions and traffic, and unhealthy nodes.",
    from: "now-6h",
  });
  for (const variable of placeVariables()) dashboard.withVariable(variable);
  for (const panel of glance()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Health"));
  for (const panel of healthPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Unhealthy nodes"));
  for (const panel of troublePanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Sessions"));
  for (const panel of sessionPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Traffic"));
  for (const panel of trafficPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Capacity"));
  for (const panel of capacityPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Statistics of the service"));
  for (const panel of servicePanels()) dashboard.withPanel(panel);
  return dashboard;
}

const size = { width: 4, height: 4 };

const glance = () => [
  stat(
    {
      ...size,
      title: "Nodes online",
      description: "Share of the selected nodes that are online. Nodes in maintenance count as not online.",
      unit: "percentunit",
      queries: [
        {
          expr: `sum(${pick("proxynet_nodes", ...AT_PLACE, 'status="online"')}) / sum(${pick("proxynet_nodes", ...AT_PLACE)})`,
        },
      ],
    },
    { past: true },
  ).thresholds(ONLINE_STEPS),
  stat(
    {
      ...size,
      title: "Nodes",
      description: "Selected nodes in any state. Absent unless there was a complete walk of the list recently.",
      unit: "none",
      queries: [{ expr: `sum(${pick("proxynet_nodes", ...AT_PLACE)})` }],
    },
    { past: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Nodes offline",
      description: "Selected nodes that are offline.",
      unit: "none",
      queries: [{ expr: `sum(${pick("proxynet_nodes", ...AT_PLACE, 'status="offline"')})` }],
    },
    { past: true },
  ).thresholds(NONE_STEPS),
  stat(
    {
      ...size,
      title: "Active sessions",
      description: "Active sessions of the whole network, from the session list.",
      unit: "short",
      queries: [{ expr: `sum(${pick("proxynet_sessions", 'status="active"')})` }],
    },
    { past: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Traffic",
      description: "Bytes per second sent and received by sessions of the selected nodes.",
      unit: "Bps",
      queries: [bytesPerSecond("", undefined, "sent", "received")],
    },
    { past: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Open episodes",
      description: "Nodes of the whole network with an open episode. The dashboard Proxywarden shows the actions.",
      unit: "none",
      queries: [{ expr: `sum(${pick("proxywarden_episodes", 'state!~"pending|given_up"')})` }],
    },
    { past: true },
  ).thresholds(steps("green", [1, "orange"])),
];
