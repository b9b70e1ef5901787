import type uPlotType from "uplot";
import type { HistoryView } from "../../../api/history.ts";
import { byId, createElement, resolveColor } from "../dom.ts";
import { formatCount, timeOfDay } from "../format.ts";

/** The global of uPlot.js (see {@link loadLibrary}). */
declare const uPlot: typeof uPlotType;

type Column = readonly (number | null)[];

/** A line of a chart: its label, its color in the style sheet, and its values. */
interface ChartLine {
  readonly label: string;
  readonly color: string;
  values(series: HistoryView["series"]): Column;
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

/** A chart. Its axis begins at zero, so that heights can be compared. */
class Chart {
  readonly figure: HTMLElement;
  readonly #title: string;
  readonly #lines: readonly ChartLine[];
  readonly #box: HTMLElement;
  readonly #now = createElement("span.now");
  #plot: uPlotType | null = null;

  constructor(title: string, lines: readonly ChartLine[]) {
    this.#title = title;
    this.#lines = lines;
    this.#box = createElement("div.plot", { role: "img", "aria-label": `${title}: not read yet` });
    this.figure = createElement("figure", createElement("figcaption", title, this.#now), this.#box);
  }

  show({ at, series, step_seconds }: HistoryView): void {
    const columns = this.#lines.map((line) => line.values(series));
    this.#now.replaceChildren(
      ...this.#lines.flatMap((line, index) => this.#currentValue(line, columns[index]!, index)),
    );
    const ranges = this.#lines.map(({ label }, index) => currentValueText(label, columns[index]!));
    this.#box.setAttribute("aria-label", `${this.#title}: ${ranges.join("; ")}`);
    const data = withGaps(at, columns, GAP_STEPS * step_seconds);
    if (this.#plot === null) this.#plot = new uPlot(optionsOf(this.#lines, this.#box), data, this.#box);
    else this.#plot.setData(data);
  }

  /** Creates the current value of a line, in the color of the line if there are several. */
  #currentValue({ label, color }: ChartLine, column: Column, index: number): readonly (string | Node)[] {
    const value = createElement("span", `${label} ${formatCount(column.at(-1))}`);
    if (this.#lines.length > 1) value.style.color = `var(${color})`;
    return index === 0 ? [value] : [" · ", value];
  }

  /** Follows the width of the page. */
  resize(): void {
    this.#plot?.setSize({ width: this.#box.clientWidth, height: HEIGHT });
  }

  /** Removes the drawing. It is drawn again by the next {@link show}, in the current colors. */
  clear(): void {
    this.#plot?.destroy();
    this.#plot = null;
  }
}

const CHARTS = [
  // On a scale of all nodes, a few that are not online would not be visible.
  new Chart("Nodes not online", [{ label: "not online", color: "--series-4", values: notOnline }]),
  new Chart("Active sessions", [
    { label: "active", color: "--series-2", values: ({ active_sessions }) => active_sessions },
  ]),
  new Chart("Calls left", [
    { label: "node", color: "--series-1", values: ({ node_management_left }) => node_management_left },
    { label: "session", color: "--series-3", values: ({ session_monitoring_left }) => session_monitoring_left },
  ]),
];
let lastHistory: HistoryView | null = null;
let library: Promise<void> | null = null;

function notOnline({ nodes, online }: HistoryView["series"]): Column {
  return nodes.map((total, index) => {
    const up = online[index] ?? null;
    return total === null || up === null ? null : total - up;
  });
}

/** Adds the charts. They follow the width of the page. */
export function startCharts(): void {
  byId("charts").append(...CHARTS.map(({ figure }) => figure));
  new ResizeObserver(() => {
    for (const chart of CHARTS) chart.resize();
  }).observe(byId("charts"));
}

/** Draws the latest history once the library is loaded. Rejects if it can't be loaded; the next call tries again. */
export async function showHistory(history: HistoryView): Promise<void> {
  lastHistory = history;
  library ??= loadLibrary();
  await library;
  for (const chart of CHARTS) chart.show(lastHistory);
}

/** Loads the library that draws charts. index.html does not load it, because it would delay the fleet. */
function loadLibrary(): Promise<void> {
  return new Promise((resolve, reject) => {
    const onerror = () => {
      library = null;
      reject(new Error("uPlot.js can't be loaded"));
    };
    document.head.append(createElement("script", { src: "page/uPlot.js", onload: () => resolve(), onerror }));
  });
}

/** Redraws the charts after the colors changed. */
export function redrawCharts(): void {
  for (const chart of CHARTS) chart.clear();
  if (lastHistory !== null) showHistory(lastHistory).catch(reportError);
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

function currentValueText(name: string, column: Column): string {
  const known = column.filter((value) => value !== null);
  if (known.length === 0) return `${name}: not known`;
  const [least, most] = [formatCount(Math.min(...known)), formatCount(Math.max(...known))];
  return `${name} now ${formatCount(column.at(-1))}, between ${least} and ${most}`;
}

function optionsOf(lines: readonly ChartLine[], box: HTMLElement): uPlotType.Options {
  const color = (name: string) => resolveColor(box, { color: `var(${name})` });
  const axis = {
    stroke: color("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    hooks: { init: [(plot) => addTooltip(plot, box)] },
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
      ...lines.map(({ label, color: name }) => ({
        label,
        stroke: color(name),
        width: 1.5,
        points: { show: false },
        ...(lines.length === 1
          ? { fill: resolveColor(box, { color: `color-mix(in srgb, var(${name}) 12%, transparent)` }) }
          : {}),
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
  const show = ({ cursor: { idx, left = 0 }, data, series }: uPlotType) => {
    const second = idx == null ? undefined : data[0][idx];
    // The nearest sample may be far away.
    tip.hidden = left < 0 || second === undefined || Math.abs(plot.posToVal(left, "x") - second) > TOOLTIP_SECONDS_MAX;
    if (second === undefined) return;
    const texts = series.slice(1).map(({ label }, index) => {
      const value = data[index + 1]![idx!];
      return `${label} ${value == null ? "unknown" : formatCount(value)}`;
    });
    tip.textContent = [timeOfDay(new Date(second * 1_000).toISOString()), ...texts].join(" · ");
    const room = container.clientWidth - plot.over.offsetLeft - tip.offsetWidth;
    tip.style.transform = `translate(${Math.max(-plot.over.offsetLeft, Math.min(left + 8, room))}px, 4px)`;
  };
  plot.hooks.setCursor = [show];
  plot.over.addEventListener("mouseleave", () => {
    tip.hidden = true;
  });
}
