/** Marker in promtool's notation for a series that a scrape no longer has. */
const STALE = "stale";
const MISSING = "_";

/** A series in the notation of promtool's unit tests, with a value for each scrape and repetitions counted. */
export interface InputSeries {
  readonly series: string;
  readonly values: string;
}

interface RecordedSeries {
  readonly runs: { readonly value: string; count: number }[];
  scrapes: number;
}

/** The samples of successive scrapes at equal intervals, of the families that are asked for. */
export class ScrapeHistory {
  readonly #families: ReadonlySet<string>;
  readonly #targetLabels: string;
  /** promtool's time begins at 0; timestamps are moved by as much. */
  readonly #startSeconds: number;
  readonly #series = new Map<string, RecordedSeries>();
  #scrapes = 0;

  /** `families`: names of series; `targetLabels`: as in PromQL, without braces. */
  constructor(families: ReadonlySet<string>, targetLabels: string, startSeconds: number) {
    this.#families = families;
    this.#targetLabels = targetLabels;
    this.#startSeconds = startSeconds;
  }

  /** Adds a page of the text format. */
  record(page: string): void {
    for (const [, name, labels = "", value] of page.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
      if (this.#families.has(name!)) this.#add(name!, labels, value!);
    }
    this.#add("up", "", "1");
    this.#scrapes++;
    for (const series of this.#series.values()) {
      if (series.scrapes === this.#scrapes) continue;
      append(series, series.runs.at(-1)?.value === MISSING ? MISSING : STALE);
      if (series.runs.at(-1)?.value === STALE) series.runs.push({ value: MISSING, count: 0 });
    }
  }

  /** The series since the first scrape. */
  inputSeries(): readonly InputSeries[] {
    return [...this.#series].map(([series, { runs }]) => ({
      series,
      values: runs
        .filter(({ count }) => count > 0)
        // A value is followed by its repetitions, a gap by its length.
        .map(({ value, count }) => (count === 1 ? value : `${value}x${value === MISSING ? count : count - 1}`))
        .join(" "),
    }));
  }

  #add(name: string, labels: string, value: string): void {
    const series = `${name}{${[labels, this.#targetLabels].filter((each) => each !== "").join(",")}}`;
    let recorded = this.#series.get(series);
    if (recorded === undefined) {
      recorded = { runs: [{ value: MISSING, count: this.#scrapes }], scrapes: this.#scrapes };
      this.#series.set(series, recorded);
    }
    append(recorded, name.endsWith("_timestamp_seconds") ? String(Number(value) - this.#startSeconds) : value);
  }
}

function append(series: RecordedSeries, value: string): void {
  const last = series.runs.at(-1);
  if (last !== undefined && last.value === value) last.count++;
  else series.runs.push({ value, count: 1 });
  series.scrapes++;
}
