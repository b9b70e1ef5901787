import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  Registry,
} from "prom-client";
import { DAEMON_FAMILIES } from "./families/daemon-families.ts";
import type { DaemonFamily } from "./families/family.ts";
import { boundText, type Format, familyHeader, seriesText, valueText } from "./text-format.ts";

type DaemonFamilies = typeof DAEMON_FAMILIES;
type FamilyName = keyof DaemonFamilies;
type NameOf<Type> = { [Name in FamilyName]: DaemonFamilies[Name]["type"] extends Type ? Name : never }[FamilyName];

/** Names of the `proxywarden_*` families, by type. */
type CounterName = NameOf<"counter">;
type GaugeName = NameOf<"gauge">;
type HistogramName = NameOf<"histogram">;

/** The labels of a family, with exactly its keys, and with one of its values if the list of values is closed. */
export type LabelsOf<Name extends FamilyName> = {
  readonly [Label in keyof DaemonFamilies[Name]["labels"]]: DaemonFamilies[Name]["labels"][Label] extends readonly (infer Value)[]
    ? Value
    : string;
};

/** The `proxywarden_*` metrics. The compiler checks names, labels and closed label values against the table. */
export type DaemonMetrics = ReturnType<typeof createDaemonMetrics>;

/** Options of {@link createDaemonMetrics}. */
interface DaemonMetricsOptions {
  /** Whether to include the metrics of the process (`process_*`, `nodejs_*`). Defaults to true. */
  readonly process?: boolean;
}

/**
 * Metrics of prom-client that are left out: gauges whose names end in _total, which promtool rejects and whose values
 * are sums of other gauges, and a minimum lag that is shown as 292 years until the first measurement.
 */
const EXCLUDED_METRICS: ReadonlySet<string> = new Set([
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
  "nodejs_eventloop_lag_min_seconds",
]);

/** Gauges that a daemon also has while it stands by. */
const STANDBY_GAUGES: ReadonlySet<string> = new Set<GaugeName>([
  "proxywarden_build_info",
  "proxywarden_leader",
  "proxywarden_config_last_reload_successful",
  "proxywarden_web_config_last_reload_successful",
  "proxywarden_web_certificate_expiration_timestamp_seconds",
  "proxywarden_export_series",
  "proxywarden_export_families_dropped",
]);

/** Creates metrics in a registry of their own, so that nothing is shared with other users of prom-client. */
export function createDaemonMetrics({ process: withProcess = true }: DaemonMetricsOptions = {}) {
  const registry = new Registry();
  for (const [name, family] of Object.entries<DaemonFamily>(DAEMON_FAMILIES)) {
    const { type, help, labels, buckets = [] } = family;
    const config = { name, help, labelNames: Object.keys(labels), registers: [registry] };
    if (type === "counter") {
      const counter = new Counter(config);
      for (const combination of combinationsOf(labels)) counter.inc(combination, 0);
    } else if (type === "gauge") clearGauge(new Gauge(config));
    else {
      const histogram = new Histogram({ ...config, buckets: [...buckets] });
      for (const combination of combinationsOf(labels)) histogram.zero(combination);
    }
  }
  if (withProcess) {
    collectDefaultMetrics({ register: registry });
    for (const name of EXCLUDED_METRICS) registry.removeSingleMetric(name);
  }
  const gaugeOf = (name: string) => registry.getSingleMetric(name) as Gauge;
  const clearGauges = (isCleared: (name: string, labels: DaemonFamily["labels"]) => boolean) => {
    for (const [name, { type, labels }] of Object.entries<DaemonFamily>(DAEMON_FAMILIES))
      if (type === "gauge" && isCleared(name, labels)) clearGauge(gaugeOf(name));
  };
  return {
    /** Adds `by` to a counter. Throws if `by` is negative. */
    inc: <Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void =>
      (registry.getSingleMetric(name) as Counter).inc(copyLabels(labels), by),
    /** Sets a gauge. NaN leaves the sample out. */
    set: <Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void =>
      gaugeOf(name).set(copyLabels(labels), value),
    /** Adds one observation to a histogram. */
    observe: <Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void =>
      (registry.getSingleMetric(name) as Histogram).observe(copyLabels(labels), value),
    /** Removes all series of a gauge. */
    clear: (name: GaugeName): void => clearGauge(gaugeOf(name)),
    /** Removes all series of all gauges with the label `policy`, because the next configuration may have other policies. */
    clearPolicyGauges: (): void => clearGauges((_, labels) => "policy" in labels),
    /** Removes all series of all gauges that only a leader sets. */
    clearLeaderGauges: (): void => clearGauges((name) => !STANDBY_GAUGES.has(name)),
    /** Renders all metrics, without an end marker, because they are part of a page. */
    // registry.metrics() is not used, because its format is a setting of the registry rather than an argument.
    render: (format: Format): Promise<string> =>
      registry.getMetricsAsJSON().then((families) => families.map((family) => familyText(family, format)).join("")),
  };
}

// prom-client keeps the object that it is passed.
const copyLabels = (labels: object) => ({ ...labels }) as Record<string, string>;

/** Returns every combination of label values, or none if a label has no closed list. */
function combinationsOf(labels: DaemonFamily["labels"]): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    combinations = combinations.flatMap((rest) => (values ?? []).map((value) => ({ ...rest, [label]: value })));
  }
  return combinations;
}

/** Removes all series: prom-client sets a new or reset gauge without labels to 0, which was never measured. */
function clearGauge(gauge: Gauge): void {
  gauge.reset();
  gauge.remove({});
}

/** A sample. `metricName` differs from the name of the family for the series of a histogram. */
type ClientSample = MetricValueWithName<string>;

/** A family. prom-client declares `type` as an enum, but returns its name. */
type ClientFamily = Omit<MetricObjectWithValues<ClientSample>, "type"> & { readonly type: unknown };

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
