import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";

/** One query of a panel. */
export interface Query {
  readonly expr: string;
  /** Name of its series. Absent means their labels. */
  readonly legend?: string;
  /** `series` (default): over the time range; `now`: the last value; `table`: the last value, one row per series. */
  readonly shape?: "series" | "now" | "table";
  /** Shortest interval between its values, such as `1m`. Rates use at least four times this range. */
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

/** Rate of a counter per second, over a range that Grafana sets from the scrape interval and the step. */
export const rate = (family: string, ...matchers: readonly string[]): string =>
  `rate(${selector(family, ...matchers)}[$__rate_interval])`;

/**
 * What a counter gained since the previous point, as a whole number that is counted once: `increase` extrapolates, and its ranges
 * overlap. A new series and a restarted daemon count from 0, if the daemon was scraped in the five minutes before the previous point.
 */
export const gained = (by: string, family: string, ...matchers: readonly string[]): Pick<Query, "expr" | "step"> => {
  // Bridges failed scrapes and restarts.
  const last = (series: string, offset = "") => `last_over_time(${series}[5m]${offset})`;
  const before = " offset $__interval";
  const counter = selector(family, ...matchers);
  return {
    expr: `sum by (${by}) (
  (${last(counter)} - ${last(counter, before)}) >= 0
  or
  ${last(counter)} and on (instance) ${last(selector("proxywarden_build_info"), before)}
)`,
    step: "1m",
  };
};

/** What a counter gained within a range such as `1d`, rounded: Prometheus extrapolates. */
export const gainedWithin = (range: string, family: string): string =>
  `round(sum(increase(${selector(family)}[${range}])))`;

/** Leaves an expression without values if the series have none at the end of the time range, so that no old value is shown as current. */
export const ifCurrent = (expr: string, series: string): string => `${expr} and on () count(${series} @ end())`;

/** Adds labels of proxynet_node_info, such as `region`, to series of nodes, and keeps those of the selected nodes. */
export const withNodeLabels = (expr: string, ...labels: readonly string[]): string =>
  `${expr} * on (instance, node_id) group_left (${labels.join(", ")}) ${selector("proxynet_node_info", ...AT_LOCATION)}`;

/** By range, the planned intervals of the walks of sessions for which it contains several walks, in seconds. */
const WALK_RANGES = { "10m": "<= 300", "1h": "> 300 <= 1800", "6h": "> 1800 <= 10800", "3d": "> 10800" } as const;

/**
 * An expression over a range that follows the planned interval of the session walks, because counters of sessions move only when a
 * walk ends. `over` gets the range; its expression keeps the label `instance`. The recording rules choose the same ranges.
 * Prometheus evaluates every range, so the expression should select few series.
 */
export const overWalks = (over: (range: string) => string): string =>
  Object.entries(WALK_RANGES)
    .map(
      ([range, interval]) =>
        `${over(`[${range}]`)} and on (instance) ${selector("proxywarden_plan_interval_seconds", SESSIONS)} ${interval}`,
    )
    .join("\nor\n");

const SESSIONS = 'collector="sessions"';

type Direction = "sent" | "received";

/** Bytes per second of the selected node: bytes over the time that the walks in the range cover. */
export const nodeBytesPerSecond = (direction: Direction): Query => {
  const bytes = selector(`proxynet_session_${direction}_bytes_total`, ON_NODE);
  const walkedAt = selector("proxywarden_collect_last_success_timestamp_seconds", SESSIONS);
  return {
    expr: overWalks(
      (range) => `increase(${bytes}${range}) / on (instance) group_left () (delta(${walkedAt}${range}) > 0)`,
    ),
    legend: direction,
  };
};

/**
 * Bytes per second of the selected regions and countries, from the recording rules. `by` is the label to keep, or empty
 * for the sum over all.
 */
export const bytesPerSecond = (by: string, legend: string | undefined, ...directions: readonly Direction[]): Query => {
  const recorded = directions.map((direction) =>
    selector(`region_country:proxynet_session_${direction}_bytes:rate`, ...AT_LOCATION),
  );
  return {
    expr: `${by === "" ? "sum" : `sum by (${by})`} (${recorded.join(" + ")})`,
    ...(legend === undefined ? {} : { legend }),
  };
};

/** What panels of traffic say about their resolution. */
export const WALKS_RESOLUTION =
  "Averaged over 10 minutes if the session list is walked at least every 5 minutes, over an hour if at least every 30 minutes, over 6 hours if at least every 3 hours, otherwise over 3 days; shorter changes are not visible. Sessions that begin and end between two walks are counted only if the service lists ended sessions.";

/**
 * Joins one series per state into one series, whose value is the index of the state, from 1. Value mappings turn it into
 * the name. `by` lists the labels to keep.
 */
export const stateNumber = (by: string, states: readonly string[], ofState: (state: string) => string): string =>
  `max by (${by}) (\n${states.map((state, index) => `  ${ofState(state)} * ${index + 1}`).join("\n  or\n")}\n)`;

/** Converts a query to Grafana's. `refId` is its letter in the panel. */
export function targetOf({ expr, legend, shape = "series", step }: Query, refId: string): DataqueryBuilder {
  const target = new DataqueryBuilder().datasource(DATASOURCE).refId(refId).expr(expr);
  if (legend !== undefined) target.legendFormat(legend);
  if (step !== undefined) target.interval(step);
  if (shape === "series") return target.range();
  return shape === "now" ? target.instant() : target.instant().format(PromQueryFormat.Table);
}
