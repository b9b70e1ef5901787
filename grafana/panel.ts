import { PanelBuilder as BarGaugeBuilder } from "@grafana/grafana-foundation-sdk/bargauge";
import type { Builder, Dataquery } from "@grafana/grafana-foundation-sdk/cog";
import {
  BarGaugeDisplayMode,
  BigValueColorMode,
  BigValueGraphMode,
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

/** What every panel says. */
export interface PanelText {
  readonly title: string;
  /** What is shown, and what to make of it: the panel's tooltip. */
  readonly description: string;
  /** One of Grafana's units; `none` for a mere count. */
  readonly unit: string;
  /** Of 24 columns. */
  readonly width: number;
  /** In rows of the grid. */
  readonly height: number;
  readonly queries: readonly Query[];
}

interface AnyPanel {
  title(title: string): this;
  description(description: string): this;
  datasource(datasource: DataSourceRef): this;
  withTarget(target: Builder<Dataquery>): this;
  unit(unit: string): this;
  span(width: number): this;
  height(height: number): this;
}

/** Gives a panel of any kind its text, size and queries. */
export function furnish<Panel extends AnyPanel>(panel: Panel, text: PanelText): Panel {
  panel.title(text.title).description(text.description).datasource(DATASOURCE).unit(text.unit);
  panel.span(text.width).height(text.height);
  for (const [index, query] of text.queries.entries()) panel.withTarget(targetOf(query, letterOf(index)));
  return panel;
}

const FIRST_LETTER = 65;
const letterOf = (index: number): string => String.fromCharCode(FIRST_LETTER + index);

const byThreshold = () => new FieldColorBuilder().mode(FieldColorModeId.Thresholds);
const lastValue = () => new ReduceDataOptionsBuilder().calcs(["lastNotNull"]);

/** Lines over time. */
export const timeSeries = (text: PanelText): TimeSeriesBuilder =>
  furnish(new TimeSeriesBuilder(), text)
    .lineWidth(1)
    .fillOpacity(10)
    .showPoints(VisibilityMode.Never)
    .axisSoftMin(0)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending));

/** Areas over time that add up. */
export const stacked = (text: PanelText): TimeSeriesBuilder =>
  timeSeries(text).fillOpacity(60).lineWidth(0).stacking(new StackingConfigBuilder().mode(StackingMode.Normal));

/** One number, or one a series; with a line of its past where that tells something. */
export const stat = (text: PanelText, { past = false } = {}): StatBuilder =>
  furnish(new StatBuilder(), text)
    .graphMode(past ? BigValueGraphMode.Area : BigValueGraphMode.None)
    .colorMode(BigValueColorMode.Value)
    .colorScheme(byThreshold())
    .reduceOptions(lastValue());

/** States over time, a row a series, coloured by thresholds or by the mapping of values. */
export const stateTimeline = (text: PanelText, thresholds?: Builder<ThresholdsConfig>): StateTimelineBuilder => {
  const panel = furnish(new StateTimelineBuilder(), text)
    .colorScheme(byThreshold())
    .showValue(VisibilityMode.Never)
    .rowHeight(0.8)
    .lineWidth(0)
    .fillOpacity(80)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    );
  return thresholds === undefined ? panel : panel.thresholds(thresholds);
};

/** Bars, a row a series, longest first where the query sorts them. */
export const bars = (text: PanelText): BarGaugeBuilder =>
  furnish(new BarGaugeBuilder(), text)
    .orientation(VizOrientation.Horizontal)
    .displayMode(BarGaugeDisplayMode.Basic)
    .min(0)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.ContinuousBlues))
    .reduceOptions(lastValue());

/** Rows, of queries in the shape of tables. */
export const table = (text: PanelText): TableBuilder => furnish(new TableBuilder(), text).showHeader(true);

/** Joins the rows of a table's queries that speak of the same thing, and says which columns stay, and as what. */
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
