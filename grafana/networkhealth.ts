import { NODE_LINK } from "./board.ts";
import { EPISODE_NAMES, ONLINE_STEPS, STATUS_NAMES, statusSeries } from "./palette.ts";
import { columns, stacked, stateTimeline, table } from "./panel.ts";
import { AT_PLACE, pick, placed } from "./query.ts";
import { worldMap } from "./worldmap.ts";

const shareOnline = (by: string): string =>
  `sum by (${by}) (${pick("proxynet_nodes", ...AT_PLACE, 'status="online"')}) / sum by (${by}) (${pick("proxynet_nodes", ...AT_PLACE)})`;

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
        { expr: `sum by (country) (${pick("proxynet_nodes", ...AT_PLACE)})`, shape: "table" },
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
    queries: [{ expr: `sum by (status) (${pick("proxynet_nodes", ...AT_PLACE)})`, legend: "{{status}}" }],
  });
  for (const [status, properties] of statusSeries) panel.overrideByName(status, properties);
  return panel;
}

/** Most rows: more unhealthy nodes have a common cause, and a longer list does not help. */
const ROWS_MAX = 200;

const notOnline = `(${pick("proxynet_node_status", 'status!="online"')} == 1)`;
const withStatus = (expr: string, status: string): string =>
  `${expr} * on (instance, node_id) group_left (status) ${status}`;

/** The nodes that need attention. */
export const troublePanels = () => [
  table({
    title: "Unhealthy nodes",
    description:
      "Nodes that are not online, longest unseen first, and nodes with an open episode: policy, state and last action. The id links to the node's dashboard.",
    unit: "none",
    width: 24,
    height: 11,
    queries: [
      {
        expr: `topk(${ROWS_MAX}, ${placed(withStatus(`(time() - ${pick("proxynet_node_last_seen_timestamp_seconds")})`, notOnline), "name", "country", "region", "version")})`,
        shape: "table",
      },
      {
        expr: placed(
          withStatus(pick("proxywarden_node_episode"), `(${pick("proxynet_node_status")} == 1)`),
          ...["name", "country", "region", "version"],
        ),
        shape: "table",
      },
    ],
  })
    .transformations(
      columns({
        node_id: "Node",
        name: "Name",
        country: "Country",
        region: "Region",
        version: "Version",
        status: "Status",
        "Value #A": "Not seen for",
        policy: "Policy",
        state: "Episode",
        action: "Last action",
      }),
    )
    .filterable(true)
    .overrideByName("Node", [{ id: "links", value: [NODE_LINK] }])
    .overrideByName("Not seen for", [{ id: "unit", value: "s" }])
    .overrideByName("Status", colored(STATUS_NAMES))
    .overrideByName("Episode", colored(EPISODE_NAMES)),
];

const colored = (mapping: unknown) => [
  { id: "mappings", value: [mapping] },
  { id: "custom.cellOptions", value: { type: "color-text" } },
];
