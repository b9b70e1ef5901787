import { NODE_LINKS } from "./dashboard.ts";
import { coloredText, EPISODE_NAMES, ONLINE_STEPS, STATUS_NAMES, statusSeries } from "./palette.ts";
import { columns, NODE_COLUMNS, stacked, stateTimeline, table } from "./panel.ts";
import { AT_LOCATION, selector, withNodeLabels } from "./query.ts";
import { worldMap } from "./world-map.ts";

const shareOnline = (by: string): string =>
  `sum by (${by}) (${selector("proxynet_nodes", ...AT_LOCATION, 'status="online"')}) / sum by (${by}) (${selector("proxynet_nodes", ...AT_LOCATION)})`;

/** Health of the network by region and country. */
export const healthPanels = () => [
  stateTimeline(
    {
      title: "Nodes online by region",
      description:
        "Share of each region's nodes that are online. A region whose nodes go offline together is one incident.",
      unit: "percentunit",
      width: 12,
      height: 9,
      queries: [{ expr: shareOnline("region"), legend: "{{region}}" }],
    },
    ONLINE_STEPS,
  ),
  stateTimeline(
    {
      title: "Nodes online by country",
      description: "Share of each country's nodes that are online.",
      unit: "percentunit",
      width: 12,
      height: 9,
      queries: [{ expr: shareOnline("country"), legend: "{{country}}" }],
    },
    ONLINE_STEPS,
  ),
  worldMap(
    {
      title: "Nodes online by country, now",
      description: "One circle per country. Color: share of nodes online. Size: number of nodes.",
      unit: "none",
      width: 12,
      height: 12,
      queries: [
        { expr: shareOnline("country"), shape: "table" },
        { expr: `sum by (country) (${selector("proxynet_nodes", ...AT_LOCATION)})`, shape: "table" },
      ],
    },
    { country: "country", values: { "Value #A": "Online", "Value #B": "Nodes" } },
  )
    .thresholds(ONLINE_STEPS)
    .overrideByName("Online", [{ id: "unit", value: "percentunit" }]),
  nodesByStatus(),
];

function nodesByStatus() {
  const panel = stacked({
    title: "Nodes by status",
    description:
      "Selected nodes by the status that the service reports. Unknown: a status that proxywarden does not know.",
    unit: "none",
    width: 12,
    height: 12,
    queries: [{ expr: `sum by (status) (${selector("proxynet_nodes", ...AT_LOCATION)})`, legend: "{{status}}" }],
  });
  for (const [status, properties] of statusSeries) panel.overrideByName(status, properties);
  return panel;
}

/** More unhealthy nodes have a common cause, so a longer list does not help. */
const ROWS_MAX = 200;

const NOT_ONLINE = `(${selector("proxynet_node_status", 'status!="online"')} == 1)`;
const withStatus = (expr: string, status: string): string =>
  `${expr} * on (instance, node_id) group_left (status) ${status}`;

/** Text for a node whose record has no last_seen. */
const NOT_STATED = { type: "special", options: { match: "nan", result: { text: "not stated", index: 0 } } };
const LAST_SEEN = selector("proxynet_node_last_seen_timestamp_seconds");
const NODE_LABELS = ["name", "country", "region", "version"] as const;

/** A table of the nodes that need attention. */
export const unhealthyNodePanels = () => [
  table({
    title: "Unhealthy nodes",
    empty: "All nodes are online, and no episode is open",
    description:
      "Nodes that are not online, longest unseen first, and nodes with an open episode: policy, state and last action. The id links to the node's dashboard.",
    unit: "none",
    width: 24,
    height: 11,
    queries: [
      {
        expr: `topk(${ROWS_MAX}, ${withNodeLabels(`(${withStatus(`(time() - ${LAST_SEEN})`, NOT_ONLINE)} or ${NOT_ONLINE} * NaN)`, ...NODE_LABELS)})`,
        shape: "table",
      },
      {
        expr: withNodeLabels(
          withStatus(selector("proxywarden_node_episode"), `(${selector("proxynet_node_status")} == 1)`),
          ...NODE_LABELS,
        ),
        shape: "table",
      },
    ],
  })
    .transformations(
      columns({
        ...NODE_COLUMNS,
        status: "Status",
        "Value #A": "Not seen for",
        policy: "Policy",
        state: "Episode",
        action: "Last action",
      }),
    )
    .filterable(true)
    .overrideByName("Node", [{ id: "links", value: NODE_LINKS }])
    .overrideByName("Not seen for", [
      { id: "unit", value: "s" },
      { id: "mappings", value: [NOT_STATED] },
    ])
    .overrideByName("Status", coloredText(STATUS_NAMES))
    .overrideByName("Episode", coloredText(EPISODE_NAMES)),
];
