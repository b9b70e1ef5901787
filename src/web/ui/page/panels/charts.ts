import type uPlotType from "uplot";
import type { HistoryDocument } from "../api.ts";
import { byId, createElement } from "../dom.ts";
import { formatCount, timeOfDay } from "../format.ts";

/** The global of uPlot.js, which is loaded before the modules. */
declare const uPlot: typeof uPlotType;

type Series = HistoryDocument["series"];
type Column = readonly (number | null)[];

/** Definition of a chart. Every axis begins at zero, so that heights can be compared. */
interface ChartSpec {
  readonly title: string;
  readonly series: readonly ChartSeries[];
}

interface ChartSeries {
  readonly label: string;
  readonly color: string;
  values(series: Series): Column;
}

const CHARTS: readonly ChartSpec[] = [
  {
    // On a scale of all nodes, a few that are not online would not be visible.
    title: "Nodes not online",
    series: [{ label: "not online", color: "--series-4", values: notOnline }],
  },
  {
    title: "Active sessions",
    series: [{ label: "active", color: "--series-2", values: ({ active_sessions }) => active_sessions }],
  },
  {
    title: "Calls left",
    series: [
      { label: "node", color: "--series-1", values: ({ node_management_left }) => node_management_left },
      { label: "session", color: "--series-3", values: ({ session_monitoring_left }) => session_monitoring_left },
    ],
  },
];

function notOnline({ nodes, online }: Series): Column {
  return nodes.map((total, index) => {
    const up = online[index] ?? null;
    return total === null || up === null ? null : total - up;
  });
}

const HEIGHT = 132;
/** Period that the server samples. The axis shows all of it, even if the daemon started later. */
const HISTORY_SECONDS = 3_600;
/** Number of steps without a sample after which the line is interrupted. */
const GAP_STEPS = 3;
/** Maximum distance between the cursor and the sample that it shows. */
const TOOLTIP_SECONDS_MAX = 60;
/** Minimum upper end of the axis, so that single nodes do not fill it. */
const VALUE_MAX_MIN = 4;
/** Minimum distance between two numbers on an axis, in CSS pixels. */
const LABEL_SPACE = 34;

interface DrawnChart {
  readonly chart: ChartSpec;
  readonly container: HTMLElement;
  readonly now: HTMLElement;
  plot: uPlotType | null;
}

const drawnCharts: readonly DrawnChart[] = CHARTS.map((chart) => ({
  chart,
  container: createElement("div.plot", { role: "img" }),
  now: createElement("span.now"),
  plot: null,
}));
let lastHistory: HistoryDocument | null = null;

/** Adds the charts. They follow the width of the page. */
export function startCharts(): void {
  byId("charts").append(
    ...drawnCharts.map(({ chart, container: box, now }) =>
      createElement("figure", createElement("figcaption", chart.title, now), box),
    ),
  );
  new ResizeObserver(() => {
    for (const { plot, container: box } of drawnCharts) plot?.setSize({ width: box.clientWidth, height: HEIGHT });
  }).observe(byId("charts"));
}

/** Draws the history. */
export function showHistory(history: HistoryDocument): void {
  lastHistory = history;
  for (const drawn of drawnCharts) {
    const columns = drawn.chart.series.map(({ label, values }) => ({ label, values: values(history.series) }));
    const texts = columns.map(({ label, values }) => `${label} ${formatCount(values.at(-1))}`);
    drawn.now.textContent = texts.join(" · ");
    const label = columns.map(({ label, values }) => currentValueText(label, values)).join("; ");
    drawn.container.setAttribute("aria-label", `${drawn.chart.title}: ${label}`);
    const data = withGaps(
      history.at,
      columns.map(({ values }) => values),
      GAP_STEPS * history.step_seconds,
    );
    if (drawn.plot === null)
      drawn.plot = new uPlot(optionsOf(drawn, drawn.container.clientWidth), data, drawn.container);
    else drawn.plot.setData(data);
  }
}

/** Adds an unknown value where no sample was taken for a while, so that no line is drawn across the gap. */
function withGaps(at: readonly number[], columns: readonly Column[], gapSeconds: number): uPlotType.AlignedData {
  const times: number[] = [];
  const values: (number | null)[][] = columns.map(() => []);
  for (const [index, second] of at.entries()) {
    const last = at[index - 1];
    if (last !== undefined && second - last > gapSeconds) {
      times.push((last + second) / 2);
      for (const column of values) column.push(null);
    }
    times.push(second);
    for (const [series, column] of values.entries()) column.push(columns[series]![index] ?? null);
  }
  return [times, ...values];
}

/** Redraws the charts after the colors changed. */
export function redrawCharts(): void {
  for (const drawn of drawnCharts) {
    drawn.plot?.destroy();
    drawn.plot = null;
  }
  if (lastHistory !== null) showHistory(lastHistory);
}

function currentValueText(name: string, column: Column): string {
  const known = column.filter((value) => value !== null);
  if (known.length === 0) return `${name}: not known yet`;
  return `${name} now ${formatCount(column.at(-1))}, between ${formatCount(Math.min(...known))} and ${formatCount(Math.max(...known))}`;
}

function optionsOf({ chart: { series }, container }: DrawnChart, width: number): uPlotType.Options {
  const color = (name: string) => resolveColor(`var(${name})`);
  const axis = {
    stroke: color("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    hooks: { init: [(plot) => addTooltip(plot, container)] },
    padding: [8, 18, 0, 0],
    scales: {
      x: { range: (_plot, _first, last) => [last - HISTORY_SECONDS, last] },
      y: { range: (_plot, _low, high) => [0, Math.max(VALUE_MAX_MIN, Math.ceil((high ?? 0) * 1.1))] },
    },
    axes: [
      { ...axis, space: 60, size: 24, values: (_plot, at) => at.map((second) => hourAndMinute.format(second * 1_000)) },
      {
        ...axis,
        size: 46,
        space: LABEL_SPACE,
        values: (_plot, at) => at.map((value) => (Number.isInteger(value) ? formatCount(value) : "")),
      },
    ],
    series: [
      {},
      ...series.map(({ label, color: name }) => ({
        label,
        stroke: color(name),
        width: 1.5,
        points: { show: false },
        ...(series.length === 1 ? { fill: resolveColor(`color-mix(in srgb, var(${name}) 12%, transparent)`) } : {}),
      })),
    ],
  };
}

const hourAndMinute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Shows time and values at the cursor. */
function addTooltip(plot: uPlotType, container: HTMLElement): void {
  const tip = createElement("div.tip", { "aria-hidden": "true" });
  tip.hidden = true;
  plot.over.append(tip);
  const show = ({ cursor: { idx, left = 0 }, data }: uPlotType) => {
    const second = idx == null ? undefined : data[0][idx];
    const values = plot.series.slice(1).map(({ label }, index) => [label, idx == null ? null : data[index + 1]![idx]]);
    // The nearest sample may be far away.
    const distance = second === undefined ? Number.POSITIVE_INFINITY : Math.abs(plot.posToVal(left, "x") - second);
    tip.hidden = left < 0 || distance > TOOLTIP_SECONDS_MAX;
    if (second === undefined) return;
    const texts = values.map(
      ([label, value]) => `${label} ${typeof value === "number" ? formatCount(value) : "unknown"}`,
    );
    tip.textContent = `${timeOfDay(new Date(second * 1_000).toISOString(), Date.now())} · ${texts.join(" · ")}`;
    const room = container.clientWidth - plot.over.offsetLeft - tip.offsetWidth;
    tip.style.transform = `translate(${Math.max(-plot.over.offsetLeft, Math.min(left + 8, room))}px, 4px)`;
  };
  plot.hooks.setCursor = [show];
  plot.over.addEventListener("mouseleave", () => {
    tip.hidden = true;
  });
}

/** Returns a color of the style sheet for a canvas. */
function resolveColor(name: string): string {
  const probe = createElement("i");
  probe.style.color = name;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
