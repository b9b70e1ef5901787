import type uPlotType from "uplot";
import type { HistoryDocument } from "../api.ts";
import { byId, h } from "../dom.ts";
import { count } from "../format.ts";

/** What uPlot.js, which comes before the modules, leaves behind. */
declare const uPlot: typeof uPlotType;

interface Chart {
  readonly title: string;
  readonly series: readonly (readonly [name: string, label: string, colour: string])[];
  /** Whether the axis begins at zero; else it is about what is there. */
  readonly fromZero: boolean;
}

const charts: readonly Chart[] = [
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
/** Of an axis, between two numbers. */
const LABEL_SPACE = 34;

interface Drawn {
  readonly chart: Chart;
  readonly box: HTMLElement;
  readonly now: HTMLElement;
  plot: uPlotType | null;
}

const drawn: readonly Drawn[] = charts.map((chart) => ({
  chart,
  box: h("div", { class: "plot", role: "img" }),
  now: h("span", { class: "now" }),
  plot: null,
}));
let last: HistoryDocument | null = null;

/** Puts the charts in their places. They follow the width of the page. */
export function startCharts(): void {
  byId("charts").append(
    ...drawn.map(({ chart, box, now }) => h("figure", {}, h("figcaption", {}, chart.title, now), box)),
  );
  new ResizeObserver(() => {
    for (const { plot, box } of drawn) plot?.setSize({ width: box.clientWidth, height: HEIGHT });
  }).observe(byId("charts"));
}

/** Draws the last hour. */
export function showHistory(history: HistoryDocument): void {
  last = history;
  for (const each of drawn) {
    const columns = each.chart.series.map(([name]) => history.series[name] ?? []);
    const data: uPlotType.AlignedData = [[...history.at], ...columns.map((column) => [...column])];
    const texts = columns.map((column, index) => `${each.chart.series[index]![1]} ${count(column.at(-1))}`);
    each.now.textContent = texts.join(" · ");
    each.box.setAttribute(
      "aria-label",
      `${each.chart.title}: ${columns.map((column, index) => described(each.chart.series[index]![1], column)).join("; ")}`,
    );
    if (each.plot === null) each.plot = new uPlot(optionsOf(each.chart, each.box.clientWidth), data, each.box);
    else each.plot.setData(data);
  }
}

/** Draws anew, in the colours of now. */
export function recolourCharts(): void {
  for (const each of drawn) {
    each.plot?.destroy();
    each.plot = null;
  }
  if (last !== null) showHistory(last);
}

function described(name: string, column: readonly (number | null)[]): string {
  const known = column.filter((value) => value !== null);
  if (known.length === 0) return `${name}: not known yet`;
  return `${name} now ${count(column.at(-1))}, between ${count(Math.min(...known))} and ${count(Math.max(...known))}`;
}

function optionsOf({ series, fromZero }: Chart, width: number): uPlotType.Options {
  const colour = (name: string) => resolved(`var(${name})`);
  const axis = {
    stroke: colour("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
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
        values: (_plot, at) => at.map((value) => (Number.isInteger(value) ? count(value) : "")),
      },
    ],
    series: [
      {},
      ...series.map(([, label, name]) => ({
        label,
        stroke: colour(name),
        width: 1.5,
        points: { show: false },
        ...(series.length === 1 ? { fill: resolved(`color-mix(in srgb, var(${name}) 12%, transparent)`) } : {}),
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

/** A colour of the style sheet as a canvas takes it. */
function resolved(colour: string): string {
  const probe = h("i");
  probe.style.color = colour;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
