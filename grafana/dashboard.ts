import type { Builder } from "@grafana/grafana-foundation-sdk/cog";
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  type Panel,
  QueryVariableBuilder,
  RowBuilder,
  TextBoxVariableBuilder,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { AT_LOCATION, DATASOURCE, type Query, selector, targetOf } from "./query.ts";
import { JOURNAL } from "./sql.ts";

/** Ids of the dashboards. They are part of URLs, so they must not change. */
export const UIDS = {
  network: "proxywarden-network",
  node: "proxywarden-node",
  daemon: "proxywarden-daemon",
  audit: "proxywarden-audit",
} as const;

const TAG = "proxywarden";

/** Link from a table cell with a node id to what the status page says about the node: why it was acted on, or not. */
export const EXPLAIN_LINK = { title: "Explain the node", url: explainUrl("__value.raw"), targetBlank: true };

/** Links from a table cell with a node id: the dashboard of the node with the same time range, and the status page. */
export const NODE_LINKS = [
  {
    title: "Open the node",
    url: `/d/${UIDS.node}?var-datasource=\${datasource}&var-node=\${__value.raw}&\${__url_time_range}`,
  },
  EXPLAIN_LINK,
];

/** Returns the address of a node on the status page. `variable` is the Grafana variable with the node's id. */
function explainUrl(variable: string): string {
  return `\${status_page}/#node/\${${variable}}`;
}

interface DashboardContent {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  /** Start of the default time range. */
  readonly from: string;
  /** Variables that select the source of all panels. By default, they select a Prometheus server and daemons. */
  readonly sources?: readonly Builder<VariableModel>[];
  readonly variables?: readonly Builder<VariableModel>[];
  readonly annotations?: readonly AnnotationQueryBuilder[];
  readonly links?: readonly DashboardLinkBuilder[];
  /** Panels above the first row. */
  readonly overview: readonly Builder<Panel>[];
  /** Panels of each row, by its title. */
  readonly rows: Readonly<Record<string, readonly Builder<Panel>[]>>;
}

/** Creates a dashboard, with links to the others. Rows after the first are collapsed: their queries run when they are opened. */
export function createDashboard(content: DashboardContent): DashboardBuilder {
  const dashboard = emptyDashboard(content);
  const { sources = daemonVariables(), variables = [], annotations = [], links = [] } = content;
  for (const variable of [...sources, ...variables, statusPageVariable()]) dashboard.withVariable(variable);
  for (const each of annotations) dashboard.annotation(each);
  for (const each of links) dashboard.link(each);
  for (const panel of content.overview) dashboard.withPanel(panel);
  for (const [index, [title, panels]] of Object.entries(content.rows).entries()) {
    const row = new RowBuilder(title);
    if (index > 0) for (const panel of panels) row.withPanel(panel);
    dashboard.withRow(row);
    if (index === 0) for (const panel of panels) dashboard.withPanel(panel);
  }
  return dashboard;
}

/** The address at which a browser reaches the status page. Prometheus may reach the daemon at a different one. */
const statusPageVariable = () =>
  new TextBoxVariableBuilder("status_page")
    .label("Status page")
    .description("Address of the daemon's status page, for links to it.")
    .defaultValue("http://127.0.0.1:9713");

/** Link from a dashboard of the selected node to the status page. */
export const explainLink = (): DashboardLinkBuilder =>
  new DashboardLinkBuilder("Explain the node")
    .type(DashboardLinkType.Link)
    .icon("external link")
    .tooltip("Why the node was or was not acted on")
    .url(explainUrl("node"))
    .targetBlank(true);

const emptyDashboard = ({ uid, title, description, from }: DashboardContent): DashboardBuilder =>
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
    );

const daemonVariables = (): readonly Builder<VariableModel>[] => [
  new DatasourceVariableBuilder("datasource")
    .label("Data source")
    .description("The Prometheus that scrapes the daemon.")
    .type("prometheus"),
  valuesVariable({
    name: "instance",
    label: "Daemon",
    description:
      "Filters by daemon. Of daemons that share a PostgreSQL journal, only the leader exports network metrics.",
    query: "label_values(proxywarden_build_info, instance)",
  }),
];

/** Variables of a dashboard of the journal in PostgreSQL: the database, policies, and a node. */
export const journalVariables = (): readonly Builder<VariableModel>[] => [
  new DatasourceVariableBuilder("journal")
    .label("Journal")
    .description("The PostgreSQL database of state.postgres.")
    .type(JOURNAL.type),
  new QueryVariableBuilder("policy")
    .datasource(JOURNAL)
    .query(JOURNAL_POLICIES)
    .definition(JOURNAL_POLICIES)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc)
    .label("Policy")
    .description("Filters by policy.")
    .multi(true)
    .includeAll(true)
    .current(ALL_SELECTED),
  new TextBoxVariableBuilder("node").label("Node").description("Filters by the id of a node; empty: all nodes."),
];

const JOURNAL_POLICIES = "SELECT DISTINCT policy FROM proxywarden_episodes ORDER BY policy";

interface ValuesVariable {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly query: string;
}

/** Variable with the values of a label, all of which are selected by default. */
const valuesVariable = ({ name, label, description, query }: ValuesVariable): QueryVariableBuilder =>
  queryVariable(name, query)
    .label(label)
    .description(description)
    .multi(true)
    .includeAll(true)
    .allValue(".*")
    .current(ALL_SELECTED);

const ALL_SELECTED = { selected: true, text: ["All"], value: ["$__all"] };

const queryVariable = (name: string, query: string): QueryVariableBuilder =>
  new QueryVariableBuilder(name)
    .datasource(DATASOURCE)
    .query({ query, refId: "StandardVariableQuery" })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc);

/** Variables that select regions and countries. */
export const locationVariables = (): readonly QueryVariableBuilder[] => [
  valuesVariable({
    name: "region",
    label: "Region",
    description: "Filters panels that have a region.",
    query: `label_values(${selector("proxynet_nodes")}, region)`,
  }),
  valuesVariable({
    name: "country",
    label: "Country",
    description: "Filters by country, within the selected regions.",
    query: `label_values(${selector("proxynet_nodes", AT_LOCATION[0])}, country)`,
  }),
];

/** Nodes in the list of the variable. More make the browser slow. */
const LISTED_NODES_MAX = 10_000;

/**
 * Variable that selects the node, by its name if `export.node_labels` has names, else by its id. Prometheus sorts labels
 * by name, so `name` comes before `node_id`.
 */
export const nodeVariable = (): QueryVariableBuilder =>
  queryVariable("node", `query_result(topk(${LISTED_NODES_MAX}, ${selector("proxynet_node_info", ...AT_LOCATION)}))`)
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

/** Annotation on every panel, from the first to the last sample of each series. */
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

/** Annotation of the alerts of the shipped rules, while they fire. */
export const alertAnnotation = (): AnnotationQueryBuilder =>
  annotation({
    name: "Alerts",
    color: "red",
    query: { expr: 'ALERTS{alertstate="firing", alertname=~"Prox(ywarden|ynet).+"}' },
    title: "{{alertname}}",
    text: "{{severity}}; docs/runbook.md has a section for each alert",
  });

/** Annotation of the actions on any node, while their steps are in progress. */
export const actionAnnotation = (): AnnotationQueryBuilder =>
  annotation({
    name: "Actions",
    color: "blue",
    query: {
      expr: `count by (policy, action) (max_over_time(${selector("proxywarden_node_episode", 'state="acting"')}[1m]))`,
    },
    title: "{{action}}",
    text: "{{action}} by the policy {{policy}}",
  });
