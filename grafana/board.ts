import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { AT_PLACE, DATASOURCE, pick, type Query, targetOf } from "./query.ts";

/** Addresses of the dashboards: part of their URLs, so they stay. */
export const UIDS = {
  network: "proxywarden-network",
  node: "proxywarden-node",
  warden: "proxywarden-warden",
} as const;

const TAG = "proxywarden";

/** A link from a cell that holds a node's id to that node, for the time shown. */
export const NODE_LINK = {
  title: "Open the node",
  url: `/d/${UIDS.node}?var-datasource=\${datasource}&var-node=\${__value.raw}&\${__url_time_range}`,
};

interface BoardText {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly from: string;
}

/** An empty dashboard with the variables that all have, and links to the others. */
export const board = ({ uid, title, description, from }: BoardText): DashboardBuilder =>
  new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([TAG])
    .time({ from, to: "now" })
    .refresh("1m")
    .timezone("browser")
    .tooltip(DashboardCursorSync.Crosshair)
    .link(
      new DashboardLinkBuilder("Proxywarden")
        .type(DashboardLinkType.Dashboards)
        .tags([TAG])
        .includeVars(true)
        .keepTime(true),
    )
    .withVariable(
      new DatasourceVariableBuilder("datasource")
        .label("Data source")
        .description("The Prometheus that scrapes the daemon.")
        .type("prometheus"),
    )
    .withVariable(
      valuesVariable({
        name: "instance",
        label: "Daemon",
        description: "Filters by daemon. Each daemon monitors its own network.",
        query: "label_values(proxywarden_build_info, instance)",
      }),
    );

interface ValuesVariable {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly query: string;
}

/** A variable whose values a label has; all of them at first. */
const valuesVariable = ({ name, label, description, query }: ValuesVariable): QueryVariableBuilder =>
  asking(name, query)
    .label(label)
    .description(description)
    .multi(true)
    .includeAll(true)
    .allValue(".*")
    .current({ selected: true, text: ["All"], value: ["$__all"] });

const asking = (name: string, query: string): QueryVariableBuilder =>
  new QueryVariableBuilder(name)
    .datasource(DATASOURCE)
    .query({ query, refId: "StandardVariableQuery" })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc);

/** The places shown. */
export const placeVariables = (): readonly QueryVariableBuilder[] => [
  valuesVariable({
    name: "region",
    label: "Region",
    description: "Filters panels that have a region.",
    query: `label_values(${pick("proxynet_nodes")}, region)`,
  }),
  valuesVariable({
    name: "country",
    label: "Country",
    description: "Filters by country, within the selected regions.",
    query: `label_values(${pick("proxynet_nodes", AT_PLACE[0])}, country)`,
  }),
];

/** Most nodes in the list of the variable: more make the browser slow. */
const CHOICES_MAX = 10_000;

/**
 * The one node shown: chosen by its name where `export.node_labels` has names, else by its id. Prometheus gives the
 * labels in the order of the alphabet, `name` before `node_id`.
 */
export const nodeVariable = (): QueryVariableBuilder =>
  asking("node", `query_result(topk(${CHOICES_MAX}, ${pick("proxynet_node_info", ...AT_PLACE)}))`)
    .label("Node")
    .description("The node to show. At most ten thousand nodes are listed; in a large network select the region first.")
    .refresh(VariableRefresh.OnDashboardLoad)
    .regex('/(?:[{,]name="(?<text>[^"]+)".*?)?[{,]node_id="(?<value>[^"]+)"/');

interface AnnotationText {
  readonly name: string;
  readonly color: string;
  readonly query: Query;
  readonly title: string;
  readonly text: string;
}

/** Marks on every panel, from the first to the last sample of each series. */
export const annotation = ({ name, color, query, title, text }: AnnotationText): AnnotationQueryBuilder =>
  new AnnotationQueryBuilder()
    .name(name)
    .datasource(DATASOURCE)
    .enable(true)
    .hide(false)
    .iconColor(color)
    .target(targetOf(query, "Anno"))
    .expr(query.expr)
    .titleFormat(title)
    .textFormat(text);
