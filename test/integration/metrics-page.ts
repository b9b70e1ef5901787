/** One sample in the text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A scraped page. */
export interface MetricsPage {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** Returns the sum of the samples with this name and these labels; null: there are none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | null;
  /** Returns the samples with this name and these labels. */
  select(name: string, labels?: Readonly<Record<string, string>>): readonly Sample[];
}

/** Parses a page in the text format. Throws on an invalid line. */
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
  if (match === null) throw new Error(`invalid sample: ${line}`);
  const [, name, pairs = "", value] = match;
  const labels = [...pairs.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)].map(([, label, text]) => [
    label!,
    text!.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped)),
  ]);
  return { name: name!, labels: Object.fromEntries(labels), value: Number(value!.replace("Inf", "Infinity")) };
}
