import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";

/** One query of a panel. */
export interface Query {
  readonly expr: string;
  /** How its series are called; absent: by their labels. */
  readonly legend?: string;
  /** `series`: over the time shown, and the default; `now`: its last value alone; `table`: that, a row a series. */
  readonly shape?: "series" | "now" | "table";
  /** What its values are no finer than, such as `1m`: rates are taken over four times as much at least. */
  readonly step?: string;
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana that puts a value in its place
const CHOSEN = "${datasource}";
/** The data source that the dashboard's variable names. */
export const DATASOURCE = { type: "prometheus", uid: CHOSEN };

/** Every query is about the daemons that the variable names: several may be in one Prometheus. */
const INSTANCE = 'instance=~"$instance"';

/** Matchers of the places that the variables name. */
export const AT_PLACE = ['region=~"$region"', 'country=~"$country"'] as const;
/** The matcher of the node that the variable names. */
export const ON_NODE = 'node_id="$node"';

/** A family's series of the daemons shown, by further matchers. */
export const pick = (family: string, ...matchers: readonly string[]): string =>
  `${family}{${[INSTANCE, ...matchers].join(", ")}}`;

/** The window of rates and increases: as wide as the scrapes and the step of the query want it. */
export const RATE_WINDOW = "[$__rate_interval]";

/** A counter's growth a second. */
export const rate = (family: string, ...matchers: readonly string[]): string =>
  `rate(${pick(family, ...matchers)}${RATE_WINDOW})`;

/** Gives the series of nodes at the places shown further labels, such as `region`, of what is known of the node. */
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
