import { get } from "node:http";
import { type Contender, type Measured, median, startContender } from "./bench-process.ts";

/** Measurements for one size of fleet. Ratios are of medians. */
export interface ExpositionResult {
  readonly nodes: number;
  readonly promClientMs: number;
  readonly promClientRssMb: number;
  /** Time to publish a snapshot in which all values changed, and to render it as text. */
  readonly textMs: number;
  /** The same if 5% of the nodes changed, spread evenly over the list. */
  readonly scatteredTextMs: number;
  /** Time to publish a snapshot in which all nodes changed, and to compress what changed. */
  readonly allMs: number;
  /** The same if 5% of the nodes changed, consecutive in the list. */
  readonly fewMs: number;
  /** The same if they are spread evenly over the list. */
  readonly scatteredMs: number;
  /** Longest time that the event loop was blocked: median of the rounds. */
  readonly gapMs: number;
  /** The same, maximum of the rounds. */
  readonly gapWorstMs: number;
  readonly bareScrapeMs: number;
  readonly scrapeMs: number;
  /** A gzip scrape right after all values changed; with a large fleet it returns the last compressed exposition. */
  readonly changedScrapeMs: number;
  readonly rssMb: number;
  /** prom-client's time divided by proxywarden's for the text. */
  readonly speedup: number;
  /** `fewMs` and `scatteredMs` divided by `allMs`. */
  readonly fewShare: number;
  readonly scatteredShare: number;
  /** Time of a scrape divided by that of one from the bare server. */
  readonly scrapeRatio: number;
  /** The same for a scrape right after all values changed. */
  readonly changedScrapeRatio: number;
}

/** Targets by size of fleet. */
export const targets: Readonly<
  Record<number, Partial<Record<keyof ExpositionResult, readonly [sign: "≥" | "≤", bound: number]>>>
> = {
  10000: { speedup: ["≥", 60], gapMs: ["≤", 5] },
  100000: {
    speedup: ["≥", 100],
    fewShare: ["≤", 0.25],
    gapMs: ["≤", 5],
    gapWorstMs: ["≤", 20],
    scrapeRatio: ["≤", 1.2],
    changedScrapeRatio: ["≤", 1.2],
    rssMb: ["≤", 450],
  },
};

/** Number of warm-up rounds and of measured rounds. */
interface Length {
  readonly warm: number;
  readonly rounds: number;
}

const lengths = (nodes: number, quick: boolean): Length => {
  if (quick) return { warm: 10, rounds: 5 };
  return nodes >= 100_000 ? { warm: 4, rounds: 7 } : { warm: 15, rounds: 25 };
};

const SCRAPES = 101;
const CHANGED_SCRAPES = 31;

/** Measures rendering a whole fleet as text, alternating with prom-client, then compressing it, and gzip scrapes. */
export async function benchExposition(nodes: number, quick: boolean): Promise<ExpositionResult> {
  const { warm, rounds } = lengths(nodes, quick);
  const proxywarden = startContender(new URL("proxywarden.ts", import.meta.url), nodes);
  const promClient = startContender(new URL("prom-client.ts", import.meta.url), nodes);
  try {
    const promClientFull: Measured[] = [];
    const text: Measured[] = [];
    const scatteredText: Measured[] = [];
    const all: Measured[] = [];
    const few: Measured[] = [];
    const scattered: Measured[] = [];
    for (let round = 0; round < warm + rounds; round++) {
      // prom-client needs less warm-up, and its rounds are long.
      if (round === 0 || round >= warm) promClientFull.push(await promClient.ask<Measured>("full"));
      text.push(await proxywarden.ask<Measured>("text_of_all"));
      scatteredText.push(await proxywarden.ask<Measured>("text_of_scattered"));
      all.push(await proxywarden.ask<Measured>("gzip_of_all"));
      few.push(await proxywarden.ask<Measured>("gzip_of_few"));
      scattered.push(await proxywarden.ask<Measured>("gzip_of_scattered"));
    }
    if (nodes <= 1_000) await compareTexts(nodes);
    const urls = await proxywarden.ask<ServerUrls>("serve");
    const rssMb = await proxywarden.ask<number>("rss");
    const promClientRssMb = await promClient.ask<number>("rss");
    promClient.stop();
    const scrapes = await measureScrapes(proxywarden, urls);
    const medianMs = (kind: readonly Measured[]) => median(kind.slice(-rounds).map(({ ms }) => ms));
    const promClientMs = medianMs(promClientFull);
    const kinds = [text, scatteredText, all, few, scattered];
    const [textMs, scatteredTextMs, allMs, fewMs, scatteredMs] = kinds.map(medianMs) as [
      number,
      number,
      number,
      number,
      number,
    ];
    const gaps = kinds.map((kind) => kind.slice(-rounds).map(({ gapMs }) => gapMs));
    return {
      nodes,
      promClientMs,
      promClientRssMb,
      textMs,
      scatteredTextMs,
      allMs,
      fewMs,
      scatteredMs,
      // The kind of round that blocks the loop longest counts.
      gapMs: Math.max(...gaps.map(median)),
      gapWorstMs: Math.max(...gaps.flat()),
      ...scrapes,
      rssMb,
      speedup: promClientMs / textMs,
      fewShare: fewMs / allMs,
      scatteredShare: scatteredMs / allMs,
      scrapeRatio: scrapes.scrapeMs / scrapes.bareScrapeMs,
      changedScrapeRatio: scrapes.changedScrapeMs / scrapes.bareScrapeMs,
    };
  } finally {
    proxywarden.stop();
    promClient.stop();
  }
}

/** Fails unless both sides render the same samples. */
async function compareTexts(nodes: number): Promise<void> {
  const sides = ["proxywarden.ts", "prom-client.ts"].map((module) =>
    startContender(new URL(module, import.meta.url), nodes),
  );
  const linesOf = async (side: Contender) => {
    await side.ask(side === sides[0] ? "text_of_all" : "full");
    const text = await side.ask<string>("text");
    return (
      text
        .split("\n")
        .filter((line) => line.startsWith("proxynet_"))
        // Both sides may write a number with different decimals.
        .map((line) => line.replace(/[^ ]+$/, (value) => String(Number(value))))
        .sort()
        .join("\n")
    );
  };
  const [proxywarden, promClient] = await Promise.all(sides.map(linesOf));
  for (const side of sides) side.stop();
  if (proxywarden !== promClient) throw new Error("proxywarden and prom-client render different samples");
}

interface ServerUrls {
  readonly proxywarden: string;
  readonly bare: string;
}

async function measureScrapes(contender: Contender, urls: ServerUrls) {
  const proxywarden: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < SCRAPES; round++) {
    // Each is first in half of the rounds, so that the order makes no difference.
    const isBareFirst = round % 2 === 0;
    if (isBareFirst) bare.push(await scrape(urls.bare));
    proxywarden.push(await scrape(urls.proxywarden));
    if (!isBareFirst) bare.push(await scrape(urls.bare));
  }
  const changed: number[] = [];
  for (let round = 0; round < CHANGED_SCRAPES; round++) {
    await contender.ask("change");
    changed.push(await scrape(urls.proxywarden));
  }
  return { bareScrapeMs: median(bare), scrapeMs: median(proxywarden), changedScrapeMs: median(changed) };
}

/** Returns the milliseconds until the complete body is received. */
const scrape = (url: string) =>
  new Promise<number>((resolve, reject) => {
    const startedAt = performance.now();
    get(url, (response) => {
      response.resume().once("end", () => resolve(performance.now() - startedAt));
    }).once("error", reject);
  });
