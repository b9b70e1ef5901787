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
    description: "Health of the network by place, its sessions and traffic, and the nodes in trouble.",
    from: "now-6h",
  });
  for (const variable of placeVariables()) dashboard.withVariable(variable);
  for (const panel of glance()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Health"));
  for (const panel of healthPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Trouble"));
  for (const panel of troublePanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Sessions"));
  for (const panel of sessionPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Traffic"));
  for (const panel of trafficPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("Capacity"));
  for (const panel of capacityPanels()) dashboard.withPanel(panel);
  dashboard.withRow(new RowBuilder("As the service counts"));
  for (const panel of servicePanels()) dashboard.withPanel(panel);
  return dashboard;
}

const size = { width: 4, height: 4 };

const glance = () => [
  stat(
    {
      ...size,
      title: "Nodes online",
      description: "Share of the nodes at the places shown that are online. Nodes in maintenance count as not online.",
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
      description: "Nodes at the places shown, in whatever state. Absent unless a complete walk of the list is recent.",
      unit: "none",
      queries: [{ expr: `sum(${pick("proxynet_nodes", ...AT_PLACE)})` }],
    },
    { past: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Nodes offline",
      description: "Nodes at the places shown that do not answer.",
      unit: "none",
      queries: [{ expr: `sum(${pick("proxynet_nodes", ...AT_PLACE, 'status="offline"')})` }],
    },
    { past: true },
  ).thresholds(NONE_STEPS),
  stat(
    {
      ...size,
      title: "Active sessions",
      description: "Sessions that the session list shows as active, in the whole network.",
      unit: "short",
      queries: [{ expr: `sum(${pick("proxynet_sessions", 'status="active"')})` }],
    },
    { past: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Traffic",
      description: "Bytes a second that sessions of the nodes at the places shown were seen to send and to receive.",
      unit: "Bps",
      queries: [bytesPerSecond("", undefined, "sent", "received")],
    },
    { past: true },
  ).thresholds(steps("text")),
  stat(
    {
      ...size,
      title: "Open episodes",
      description:
        "Nodes with trouble that a policy is about, in the whole network. What is done is on the warden's dashboard.",
      unit: "none",
      queries: [{ expr: `sum(${pick("proxywarden_episodes", 'state!~"pending|given_up"')})` }],
    },
    { past: true },
  ).thresholds(steps("green", [1, "orange"])),
];
