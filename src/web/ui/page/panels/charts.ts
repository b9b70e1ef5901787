import type uPlotType from "uplot";
import type { HistoryDocument } from "../api.ts";
import { byId, createElement } from "../dom.ts";
import { formatCount } from "../format.ts";

/** The global of uPlot.js, which is loaded before the modules. */
declare const uPlot: typeof uPlotType;

interface ChartSpec {
  readonly title: string;
  readonly series: readonly (readonly [name: keyof HistoryDocument["series"], label: string, color: string])[];
  /** Whether the axis begins at zero; if not, it fits the values. */
  readonly fromZero: boolean;
}

const CHARTS: readonly ChartSpec[] = [
  { title: "Nodes online", series: [["online", "online", "--series-1"]], fromZero: false },
  { title: "Active sessions", series: [["active_sessions", "active", "--series-2"]], fromZero: false },
  {
    title: "Calls left",
    series: [
      ["node_management_left", "node", "--series-1"],
      ["session_monitoring_left", "session", "--series-3"],
    ],
    fromZero: true,
  },
];

const HEIGHT = 132;
/** Distance of two numbers on an axis. */
const LABEL_SPACE = 34;

interface DrawnChart {
  readonly chart: ChartSpec;
  readonly container: HTMLElement;
  readonly now: HTMLElement;
  plot: uPlotType | null;
}

const drawnCharts: readonly DrawnChart[] = CHARTS.map((chart) => ({
  chart,
  container: createElement("div", { class: "plot", role: "img" }),
  now: createElement("span", { class: "now" }),
  plot: null,
}));
let lastHistory: HistoryDocument | null = null;

/** Adds the charts. They follow the width of the page. */
export function startCharts(): void {
  byId("charts").append(
    ...drawnCharts.map(({ chart, container: box, now }) =>
      createElement("figure", {}, createElement("figcaption", {}, chart.title, now), box),
    ),
  );
  new ResizeObserver(() => {
    for (const { plot, container: box } of drawnCharts) plot?.setSize({ width: box.clientWidth, height: HEIGHT });
  }).observe(byId("charts"));
}

/** Draws the history. */
export function showHistory(history: HistoryDocument): void {
  lastHistory = history;
  for (const each of drawnCharts) {
    const columns = each.chart.series.map(([name]) => history.series[name]);
    const data: uPlotType.AlignedData = [[...history.at], ...columns.map((column) => [...column])];
    const texts = columns.map((column, index) => `${each.chart.series[index]![1]} ${formatCount(column.at(-1))}`);
    each.now.textContent = texts.join(" · ");
    each.container.setAttribute(
      "aria-label",
      `${each.chart.title}: ${columns.map((column, index) => currentValueText(each.chart.series[index]![1], column)).join("; ")}`,
    );
    if (each.plot === null)
      each.plot = new uPlot(optionsOf(each.chart, each.container.clientWidth), data, each.container);
    else each.plot.setData(data);
  }
}

/** Redraws the charts after the colors changed. */
export function redrawCharts(): void {
  for (const each of drawnCharts) {
    each.plot?.destroy();
    each.plot = null;
  }
  if (lastHistory !== null) showHistory(lastHistory);
}

function currentValueText(name: string, column: readonly (number | null)[]): string {
  const known = column.filter((value) => value !== null);
  if (known.length === 0) return `${name}: not known yet`;
  return `${name} now ${formatCount(column.at(-1))}, between ${formatCount(Math.min(...known))} and ${formatCount(Math.max(...known))}`;
}

function optionsOf({ series, fromZero }: ChartSpec, width: number): uPlotType.Options {
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
    cursor: { show: false },
    padding: [8, 4, 0, 0],
    scales: { y: { range: (_plot, low, high) => rangeOf(low, high, fromZero) } },
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
      ...series.map(([, label, name]) => ({
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

/** The axis covers at least some percent of the value, so that small changes of a flat line are not exaggerated. */
function rangeOf(low: number | null, high: number | null, fromZero: boolean): [number, number] {
  if (low === null || high === null) return [0, 1];
  if (fromZero) return [0, Math.max(1, high * 1.1)];
  const room = Math.max((high - low) * 0.15, high * 0.005, 1);
  return [Math.max(0, Math.floor(low - room)), Math.ceil(high + room)];
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
