import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { DAEMON_FAMILIES, type DaemonFamily } from "./families/daemon-families.ts";
import { boundText, type Format, familyHeader, seriesText, valueText } from "./text-format.ts";

type DaemonFamilies = typeof DAEMON_FAMILIES;
type FamilyName = keyof DaemonFamilies;
type NameOf<Type> = { [Name in FamilyName]: DaemonFamilies[Name]["type"] extends Type ? Name : never }[FamilyName];

/** Names of the daemon's own families, by type. */
export type CounterName = NameOf<"counter">;
export type GaugeName = NameOf<"gauge">;
export type HistogramName = NameOf<"histogram">;

/** The labels of a family: exactly these keys, and where the list of values is closed, one of them. */
export type LabelsOf<Name extends FamilyName> = {
  readonly [Label in keyof DaemonFamilies[Name]["labels"]]: DaemonFamilies[Name]["labels"][Label] extends readonly (infer Value)[]
    ? Value
    : string;
};

/** The daemon's own metrics. Names, labels and closed label values are checked against the table by the compiler. */
export interface DaemonMetrics {
  /** Adds `by`, never negative, to a counter; 1 if absent. */
  inc<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  /** Sets a gauge. NaN leaves the sample out. */
  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Adds one observation to a histogram. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Removes all series of a gauge. */
  clear(name: GaugeName): void;
  /** All of them as they are now, ready to stand beside others on the page: no end mark. */
  render(format: Format): Promise<string>;
}

/** What else is shown. */
export interface DaemonMetricsOptions {
  /** Whether the metrics of the process itself (`process_*`, `nodejs_*`) are among them; true if absent. */
  readonly process?: boolean;
}

/**
 * Gauges that end in _total, which promtool rejects and a sum over the others gives; and a minimum that reads 292 years
 * until something was sampled.
 */
const EXCLUDED_METRICS: ReadonlySet<string> = new Set([
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
  "nodejs_eventloop_lag_min_seconds",
]);

/** Metrics in a registry of their own: nothing is shared with other users of prom-client. */
export function createDaemonMetrics({ process: withProcess = true }: DaemonMetricsOptions = {}): DaemonMetrics {
  const registry = new Registry();
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, family] of Object.entries<DaemonFamily>(DAEMON_FAMILIES)) {
    const { type, help, labels, buckets = [] } = family;
    const config = { name, help, labelNames: Object.keys(labels), registers: [registry] };
    if (type === "counter") {
      const counter = new Counter(config);
      for (const combination of combinationsOf(labels)) counter.inc(combination, 0);
      counters.set(name, counter);
    } else if (type === "gauge") gauges.set(name, clearGauge(new Gauge(config)));
    else {
      const histogram = new Histogram({ ...config, buckets: [...buckets] });
      for (const combination of combinationsOf(labels)) histogram.zero(combination);
      histograms.set(name, histogram);
    }
  }
  if (withProcess) {
    collectDefaultMetrics({ register: registry });
    for (const name of EXCLUDED_METRICS) registry.removeSingleMetric(name);
  }
  return {
    inc: (name, labels, by = 1) => counters.get(name)!.inc(copyLabels(labels), by),
    set: (name, labels, value) => gauges.get(name)!.set(copyLabels(labels), value),
    observe: (name, labels, value) => histograms.get(name)!.observe(copyLabels(labels), value),
    clear: (name) => clearGauge(gauges.get(name)!),
    // Not registry.metrics(): that renders by a content type that all users of the registry share.
    render: (format) =>
      registry.getMetricsAsJSON().then((families) => families.map((family) => familyText(family, format)).join("")),
  };
}

// prom-client keeps the object it is given.
const copyLabels = (labels: object) => ({ ...labels }) as Record<string, string>;

/** Every combination of the labels' values, if all of them are closed lists: none else. */
function combinationsOf(labels: DaemonFamily["labels"]): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    combinations = combinations.flatMap((rest) => (values ?? []).map((value) => ({ ...rest, [label]: value })));
  }
  return combinations;
}

/** prom-client starts and resets a gauge without labels at 0, which was never measured. */
function clearGauge(gauge: Gauge): Gauge {
  gauge.reset();
  gauge.remove({});
  return gauge;
}

interface ClientSample {
  readonly value: number;
  /** Differs from the family's where it is a part of a histogram. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
}

interface ClientFamily {
  readonly name: string;
  readonly help: string;
  /** prom-client declares an enum, and gives its word. */
  readonly type: unknown;
  readonly values: readonly ClientSample[];
}

function familyText({ name, help, type, values }: ClientFamily, format: Format): string {
  if (type !== "counter" && type !== "gauge" && type !== "histogram") throw new Error(`${name} is of type ${type}`);
  const lines = values.filter(({ value }) => !Number.isNaN(value)).map((sample) => sampleLine(name, sample));
  return lines.length === 0 ? "" : familyHeader({ name, type, help }, format) + lines.join("");
}

function sampleLine(name: string, { metricName, labels, value }: ClientSample): string {
  const { le, ...others } = labels;
  const texts = Object.fromEntries(Object.entries(others).map(([label, text]) => [label, String(text)]));
  if (le !== undefined) texts.le = typeof le === "number" ? boundText(le) : le;
  return `${seriesText(metricName ?? name, texts)} ${valueText(value)}\n`;
}
