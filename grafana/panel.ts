import { PanelBuilder as BarGaugeBuilder } from "@grafana/grafana-foundation-sdk/bargauge";
import type { Builder, Dataquery } from "@grafana/grafana-foundation-sdk/cog";
import {
  BarGaugeDisplayMode,
  BigValueColorMode,
  BigValueGraphMode,
  GraphDrawStyle,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizOrientation,
  VizTooltipOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import {
  type DataSourceRef,
  FieldColorBuilder,
  FieldColorModeId,
  type ThresholdsConfig,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as StateTimelineBuilder } from "@grafana/grafana-foundation-sdk/statetimeline";
import { PanelBuilder as TableBuilder } from "@grafana/grafana-foundation-sdk/table";
import { PanelBuilder as TimeSeriesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";
import { DATASOURCE, type Query, targetOf } from "./query.ts";
import { JOURNAL, type SqlQuery, sqlTargetOf } from "./sql.ts";

/** Text, size and queries of a panel. */
export interface PanelText {
  readonly title: string;
  /** What is shown and how to read it: the panel's tooltip. */
  readonly description: string;
  /** One of Grafana's units, or `none` for a count. */
  readonly unit: string;
  /** Width in columns, of 24. */
  readonly width: number;
  /** Height in rows of the grid. */
  readonly height: number;
  /** What the panel shows instead of values if there are none. */
  readonly empty?: string;
  /** Of Prometheus, or of the journal in PostgreSQL. */
  readonly queries: readonly (Query | SqlQuery)[];
}

interface AnyPanel {
  title(title: string): this;
  description(description: string): this;
  datasource(datasource: DataSourceRef): this;
  withTarget(target: Builder<Dataquery>): this;
  unit(unit: string): this;
  noValue(text: string): this;
  span(width: number): this;
  height(height: number): this;
}

/** Sets text, size and queries of a panel. */
export function configurePanel<Panel extends AnyPanel>(panel: Panel, text: PanelText): Panel {
  const [first] = text.queries;
  const isJournal = first !== undefined && isSql(first);
  const { empty = isJournal ? "Nothing in the time range" : "Not exported by the selected daemons" } = text;
  panel.title(text.title).description(text.description).unit(text.unit).noValue(empty);
  panel
    .datasource(isJournal ? JOURNAL : DATASOURCE)
    .span(text.width)
    .height(text.height);
  for (const [index, query] of text.queries.entries()) {
    const letter = letterOf(index);
    panel.withTarget(isSql(query) ? sqlTargetOf(query, letter) : targetOf(query, letter));
  }
  return panel;
}

const isSql = (query: Query | SqlQuery): query is SqlQuery => "sql" in query;

const FIRST_LETTER = 65;
const letterOf = (index: number): string => String.fromCharCode(FIRST_LETTER + index);

/** Over a range, Grafana would show the last value, however old it is. */
const currentValue = (query: Query | SqlQuery): Query | SqlQuery => (isSql(query) ? query : { ...query, shape: "now" });

const byThreshold = () => new FieldColorBuilder().mode(FieldColorModeId.Thresholds);
const lastValue = () => new ReduceDataOptionsBuilder().calcs(["lastNotNull"]);

const legend = (mode: LegendDisplayMode, calcs: string[]) =>
  new VizLegendOptionsBuilder().displayMode(mode).placement(LegendPlacement.Bottom).showLegend(true).calcs(calcs);

/** Lines over time. */
export const timeSeries = (text: PanelText): TimeSeriesBuilder =>
  configurePanel(new TimeSeriesBuilder(), text)
    .lineWidth(1)
    .fillOpacity(10)
    .showPoints(VisibilityMode.Never)
    .axisSoftMin(0)
    .legend(legend(LegendDisplayMode.Table, ["lastNotNull", "max"]))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending));

/** Stacked areas over time. */
export const stacked = (text: PanelText): TimeSeriesBuilder =>
  timeSeries(text).fillOpacity(60).lineWidth(0).stacking(new StackingConfigBuilder().mode(StackingMode.Normal));

/** Stacked bars over time of events, each of which is counted once; the legend has their sum. */
export const counts = (text: Omit<PanelText, "unit">): TimeSeriesBuilder =>
  stacked({ ...text, unit: "none" })
    .drawStyle(GraphDrawStyle.Bars)
    .decimals(0)
    .legend(legend(LegendDisplayMode.Table, ["sum"]));

/**
 * One number per series. With `history`, a line also shows its values over time; then the query must have no values if there is no
 * current one.
 */
export const stat = (text: PanelText, { history = false } = {}): StatBuilder =>
  configurePanel(new StatBuilder(), history ? text : { ...text, queries: text.queries.map(currentValue) })
    .graphMode(history ? BigValueGraphMode.Area : BigValueGraphMode.None)
    .colorMode(BigValueColorMode.Value)
    .colorScheme(byThreshold())
    .reduceOptions(lastValue());

/** States over time, one row per series, colored by thresholds or value mappings. */
export const stateTimeline = (text: PanelText, thresholds?: Builder<ThresholdsConfig>): StateTimelineBuilder => {
  const panel = configurePanel(new StateTimelineBuilder(), text)
    .colorScheme(byThreshold())
    .showValue(VisibilityMode.Never)
    .rowHeight(0.8)
    .lineWidth(0)
    .fillOpacity(80)
    .legend(legend(LegendDisplayMode.List, []));
  return thresholds === undefined ? panel : panel.thresholds(thresholds);
};

/** Bars, one row per series, in the order of the query. */
export const bars = (text: PanelText): BarGaugeBuilder =>
  configurePanel(new BarGaugeBuilder(), text)
    .orientation(VizOrientation.Horizontal)
    .displayMode(BarGaugeDisplayMode.Basic)
    .min(0)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.ContinuousBlues))
    .reduceOptions(lastValue());

/** A table of queries of the shape `table`. */
export const table = (text: PanelText): TableBuilder => configurePanel(new TableBuilder(), text).showHeader(true);

/** Columns of a table with the labels of `proxynet_node_info`. */
export const NODE_COLUMNS = {
  node_id: "Node",
  name: "Name",
  country: "Country",
  region: "Region",
  version: "Version",
};

/** Joins the rows of a table's queries by their labels, and names the columns to keep. */
export const columns = (names: Readonly<Record<string, string>>) => [
  { id: "merge", options: {} },
  { id: "filterFieldsByName", options: { include: { names: Object.keys(names) } } },
  {
    id: "organize",
    options: {
      excludeByName: {},
      indexByName: Object.fromEntries(Object.keys(names).map((name, index) => [name, index])),
      renameByName: names,
    },
  },
];
