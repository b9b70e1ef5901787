import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";

/** One query of a panel. */
export interface Query {
  readonly expr: string;
  /** Name of its series; absent: their labels. */
  readonly legend?: string;
  /** `series` (default): over the time range; `now`: the last value; `table`: the last value, one row per series. */
  readonly shape?: "series" | "now" | "table";
  /** Resolution of its values, such as `1m`. Rates use at least four times this range. */
  readonly step?: string;
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana that puts a value in its place
const CHOSEN = "${datasource}";
/** The data source of the dashboard's variable. */
export const DATASOURCE = { type: "prometheus", uid: CHOSEN };

/** Matcher of the selected daemons, which every query has: one Prometheus may scrape several. */
const INSTANCE = 'instance=~"$instance"';

/** Matchers of the selected regions and countries. */
export const AT_PLACE = ['region=~"$region"', 'country=~"$country"'] as const;
/** Matcher of the selected node. */
export const ON_NODE = 'node_id="$node"';

/** Selector of a family's series of the selected daemons, with further matchers. */
export const pick = (family: string, ...matchers: readonly string[]): string =>
  `${family}{${[INSTANCE, ...matchers].join(", ")}}`;

/** Range of rates and increases: set by Grafana from the scrape interval and the step. */
export const RATE_WINDOW = "[$__rate_interval]";

/** Rate of a counter per second. */
export const rate = (family: string, ...matchers: readonly string[]): string =>
  `rate(${pick(family, ...matchers)}${RATE_WINDOW})`;

/** Adds labels of proxynet_node_info, such as `region`, to series of the selected nodes. */
export const placed = (expr: string, ...labels: readonly string[]): string =>
  `${expr} * on (instance, node_id) group_left (${labels.join(", ")}) ${pick("proxynet_node_info", ...AT_PLACE)}`;

/**
 * One series in place of one a state: the number of the state, from 1, in the list that a mapping of values gives the
 * names of. `by`: what is left of the labels.
 */
export const stateNumber = (by: string, states: readonly string[], ofState: (state: string) => string): string =>
  `max by (${by}) (\n${states.map((state, index) => `  ${ofState(state)} * ${index + 1}`).join("\n  or\n")}\n)`;

/** The query as Grafana's own. `refId`: its letter in the panel. */
export function targetOf({ expr, legend, shape = "series", step }: Query, refId: string): DataqueryBuilder {
  const target = new DataqueryBuilder().datasource(DATASOURCE).refId(refId).expr(expr);
  if (legend !== undefined) target.legendFormat(legend);
  if (step !== undefined) target.interval(step);
  if (shape === "series") return target.range();
  return shape === "now" ? target.instant() : target.instant().format(PromQueryFormat.Table);
}
