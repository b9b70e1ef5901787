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

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces it by the selected value
const SELECTED = "${datasource}";
/** The data source of the dashboard's variable. */
export const DATASOURCE = { type: "prometheus", uid: SELECTED };

/** Matcher of the selected daemons. Every query has it, because one Prometheus may scrape several. */
const INSTANCE = 'instance=~"$instance"';

/** Matchers of the selected regions and countries. */
export const AT_LOCATION = ['region=~"$region"', 'country=~"$country"'] as const;
/** Matcher of the selected node. */
export const ON_NODE = 'node_id="$node"';

/** Selects the series of a metric family on the selected daemons. */
export const selector = (family: string, ...matchers: readonly string[]): string =>
  `${family}{${[INSTANCE, ...matchers].join(", ")}}`;

/** Range of rates and increases: set by Grafana from the scrape interval and the step. */
export const RATE_WINDOW = "[$__rate_interval]";

/** Rate of a counter per second. */
export const rate = (family: string, ...matchers: readonly string[]): string =>
  `rate(${selector(family, ...matchers)}${RATE_WINDOW})`;

/** Adds labels of proxynet_node_info, such as `region`, to series of nodes, and keeps those of the selected nodes. */
export const withNodeLabels = (expr: string, ...labels: readonly string[]): string =>
  `${expr} * on (instance, node_id) group_left (${labels.join(", ")}) ${selector("proxynet_node_info", ...AT_LOCATION)}`;

type Direction = "sent" | "received";

/** Sessions are walked less often than they are scraped, so rates use at least four minutes. */
export const SESSION_STEP = "1m";

/** Bytes per second of the selected nodes. `by`: labels to keep; empty: the sum over all. */
export const bytesPerSecond = (by: string, legend: string | undefined, ...directions: readonly Direction[]): Query => {
  const rates = directions.map((direction) => rate(`proxynet_session_${direction}_bytes_total`)).join(" + ");
  const sum = by === "" ? "sum" : `sum by (${by})`;
  return {
    expr: `${sum} (\n  ${withNodeLabels(directions.length === 1 ? rates : `(${rates})`, "region", "country")}\n)`,
    step: SESSION_STEP,
    ...(legend === undefined ? {} : { legend }),
  };
};

/**
 * Joins one series per state into one series, whose value is the index of the state, from 1. Value mappings turn it into
 * the name. `by`: labels to keep.
 */
export const stateNumber = (by: string, states: readonly string[], ofState: (state: string) => string): string =>
  `max by (${by}) (\n${states.map((state, index) => `  ${ofState(state)} * ${index + 1}`).join("\n  or\n")}\n)`;

/** Converts a query to Grafana's. `refId`: its letter in the panel. */
export function targetOf({ expr, legend, shape = "series", step }: Query, refId: string): DataqueryBuilder {
  const target = new DataqueryBuilder().datasource(DATASOURCE).refId(refId).expr(expr);
  if (legend !== undefined) target.legendFormat(legend);
  if (step !== undefined) target.interval(step);
  if (shape === "series") return target.range();
  return shape === "now" ? target.instant() : target.instant().format(PromQueryFormat.Table);
}
