import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { boundText, type Format, familyHeader, seriesText, valueText } from "./text-format.ts";
import { WARDEN_FAMILIES, type WardenFamily } from "./families/daemon-families.ts";

type Families = typeof WARDEN_FAMILIES;
type FamilyName = keyof Families;
type NameOf<Type> = { [Name in FamilyName]: Families[Name]["type"] extends Type ? Name : never }[FamilyName];

/** Names of the daemon's own families, by type. */
export type CounterName = NameOf<"counter">;
export type GaugeName = NameOf<"gauge">;
export type HistogramName = NameOf<"histogram">;

/** The labels of a family: exactly these keys, and where the list of values is closed, one of them. */
export type LabelsOf<Name extends FamilyName> = {
  readonly [Label in keyof Families[Name]["labels"]]: Families[Name]["labels"][Label] extends readonly (infer Value)[]
    ? Value
    : string;
};

/** The daemon's own metrics. Names, labels and closed label values are checked against the table by the compiler. */
export interface WardenMetrics {
  /** Adds `by`, never negative, to a counter; 1 if absent. */
  inc<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  /** Sets a gauge. NaN leaves the sample out. */
  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Adds one observation to a histogram. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Takes one series away. */
  remove<Name extends FamilyName>(name: Name, labels: LabelsOf<Name>): void;
  /** All of them as they are now, ready to stand beside others on the page: no end mark. */
  render(format: Format): Promise<string>;
}

/** What else is shown. */
export interface WardenOptions {
  /** Whether the metrics of the process itself (`process_*`, `nodejs_*`) are among them; true if absent. */
  readonly process?: boolean;
}

/**
 * Gauges that end in _total, which promtool rejects and a sum over the others gives; and a minimum that reads 292 years
 * until something was sampled.
 */
const unwanted: ReadonlySet<string> = new Set([
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
  "nodejs_eventloop_lag_min_seconds",
]);

/** Metrics in a registry of their own: nothing is shared with other users of prom-client. */
export function createWardenMetrics({ process: withProcess = true }: WardenOptions = {}): WardenMetrics {
  const registry = new Registry();
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, family] of Object.entries<WardenFamily>(WARDEN_FAMILIES)) {
    const { type, help, labels, buckets = [] } = family;
    const config = { name, help, labelNames: Object.keys(labels), registers: [registry] };
    if (type === "counter") {
      const counter = new Counter(config);
      for (const combination of combinationsOf(labels)) counter.inc(combination, 0);
      counters.set(name, counter);
    } else if (type === "gauge") gauges.set(name, startAbsent(new Gauge(config)));
    else {
      const histogram = new Histogram({ ...config, buckets: [...buckets] });
      for (const combination of combinationsOf(labels)) histogram.zero(combination);
      histograms.set(name, histogram);
    }
  }
  if (withProcess) {
    collectDefaultMetrics({ register: registry });
    for (const name of unwanted) registry.removeSingleMetric(name);
  }
  return {
    inc: (name, labels, by = 1) => counters.get(name)!.inc(plain(labels), by),
    set: (name, labels, value) => gauges.get(name)!.set(plain(labels), value),
    observe: (name, labels, value) => histograms.get(name)!.observe(plain(labels), value),
    remove(name, labels) {
      const metric: Removable = (counters.get(name) ?? gauges.get(name) ?? histograms.get(name))!;
      metric.remove(plain(labels));
    },
    // Not registry.metrics(): that renders by a content type that all users of the registry share.
    render: (format) =>
      registry.getMetricsAsJSON().then((families) => families.map((family) => familyText(family, format)).join("")),
  };
}

interface Removable {
  remove(labels: Record<string, string>): void;
}

// prom-client keeps the object it is given.
const plain = (labels: object) => ({ ...labels }) as Record<string, string>;

/** Every combination of the labels' values, if all of them are closed lists: none else. */
function combinationsOf(labels: WardenFamily["labels"]): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    combinations = combinations.flatMap((rest) => (values ?? []).map((value) => ({ ...rest, [label]: value })));
  }
  return combinations;
}

/** prom-client starts a gauge without labels at 0, which was never measured. */
function startAbsent(gauge: Gauge): Gauge {
  gauge.remove({});
  return gauge;
}

interface Sample {
  readonly value: number;
  /** Differs from the family's where it is a part of a histogram. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
}

interface Family {
  readonly name: string;
  readonly help: string;
  /** prom-client declares an enum, and gives its word. */
  readonly type: unknown;
  readonly values: readonly Sample[];
}

function familyText({ name, help, type, values }: Family, format: Format): string {
  if (type !== "counter" && type !== "gauge" && type !== "histogram") throw new Error(`${name} is of type ${type}`);
  const lines = values.filter(({ value }) => !Number.isNaN(value)).map((sample) => sampleLine(name, sample));
  return lines.length === 0 ? "" : familyHeader({ name, type, help }, format) + lines.join("");
}

function sampleLine(name: string, { metricName, labels, value }: Sample): string {
  const { le, ...others } = labels;
  const texts = Object.fromEntries(Object.entries(others).map(([label, text]) => [label, String(text)]));
  if (le !== undefined) texts.le = typeof le === "number" ? boundText(le) : le;
  return `${seriesText(metricName ?? name, texts)} ${valueText(value)}\n`;
}
