/** One sample of a page of the text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What a scrape showed. */
export interface MetricsPage {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** Sum of the samples of that name whose labels hold these; null where there is none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | null;
  /** The samples of that name whose labels hold these. */
  select(name: string, labels?: Readonly<Record<string, string>>): readonly Sample[];
}

/** Reads a page of the text format; a line that is none throws. */
export function parseMetricsPage(text: string): MetricsPage {
  const samples = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseSample);
  const select: MetricsPage["select"] = (name, labels = {}) =>
    samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  return {
    text,
    samples,
    select,
    sum(name, labels) {
      const selected = select(name, labels);
      return selected.length === 0 ? null : selected.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function parseSample(line: string): Sample {
  const match = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) throw new Error(`this is no sample: ${line}`);
  const [, name, pairs = "", value] = match;
  const labels = [...pairs.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)].map(([, label, text]) => [
    label!,
    text!.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped)),
  ]);
  return { name: name!, labels: Object.fromEntries(labels), value: Number(value!.replace("Inf", "Infinity")) };
}
