import { get } from "node:http";
import { type Contender, type Measured, median, startContender } from "./bench-process.ts";

/** Measurements for one size of fleet. Ratios are of medians. */
export interface ExpositionResult {
  readonly nodes: number;
  readonly promClientMs: number;
  readonly promClientRssMb: number;
  readonly fullMs: number;
  readonly fewMs: number;
  readonly compressMs: number;
  /** Longest time that the event loop was blocked in a refresh or a compression: median of the rounds. */
  readonly gapMs: number;
  /** The same, maximum of the rounds. */
  readonly gapWorstMs: number;
  readonly bareScrapeMs: number;
  readonly scrapeMs: number;
  /** A gzip scrape right after a full refresh. */
  readonly changedScrapeMs: number;
  readonly rssMb: number;
  /** prom-client's full refresh divided by proxywarden's. */
  readonly speedup: number;
  /** A refresh of 5% of the nodes divided by a full one. */
  readonly fewShare: number;
  /** A scrape divided by one of the bare server. */
  readonly scrapeRatio: number;
  /** The same for a scrape right after a full refresh. */
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

const SCRAPES = 31;
const CHANGED_SCRAPES = 9;

/** Measures a refresh of all values, a refresh of 5% and a cached gzip scrape, alternating with prom-client. */
export async function benchExposition(nodes: number, quick: boolean): Promise<ExpositionResult> {
  const { warm, rounds } = lengths(nodes, quick);
  const ours = startContender(new URL("proxywarden.ts", import.meta.url), nodes);
  const promClient = startContender(new URL("prom-client.ts", import.meta.url), nodes);
  try {
    const promClientFull: Measured[] = [];
    const full: Measured[] = [];
    const few: Measured[] = [];
    const compressed: Measured[] = [];
    for (let round = 0; round < warm + rounds; round++) {
      // prom-client needs less warm-up, and its rounds are long.
      if (round === 0 || round >= warm) promClientFull.push(await promClient.ask<Measured>("full"));
      full.push(await ours.ask<Measured>("full"));
      compressed.push(await ours.ask<Measured>("compress"));
      few.push(await ours.ask<Measured>("few"));
      await ours.ask("compress");
    }
    if (nodes <= 1_000) await compareTexts(nodes);
    const urls = await ours.ask<ServerUrls>("serve");
    const rssMb = await ours.ask<number>("rss");
    const promClientRssMb = await promClient.ask<number>("rss");
    promClient.stop();
    const scrapes = await measureScrapes(ours, urls);
    const medianMs = (all: readonly Measured[]) => median(all.slice(-rounds).map(({ ms }) => ms));
    const promClientMs = medianMs(promClientFull);
    const fullMs = medianMs(full);
    const fewMs = medianMs(few);
    const gaps = [full, few, compressed].map((all) => all.slice(-rounds).map(({ gapMs }) => gapMs));
    return {
      nodes,
      promClientMs,
      promClientRssMb,
      fullMs,
      fewMs,
      compressMs: medianMs(compressed),
      // The kind of round that blocks the loop longest counts.
      gapMs: Math.max(...gaps.map(median)),
      gapWorstMs: Math.max(...gaps.flat()),
      ...scrapes,
      rssMb,
      speedup: promClientMs / fullMs,
      fewShare: fewMs / fullMs,
      scrapeRatio: scrapes.scrapeMs / scrapes.bareScrapeMs,
      changedScrapeRatio: scrapes.changedScrapeMs / scrapes.bareScrapeMs,
    };
  } finally {
    ours.stop();
    promClient.stop();
  }
}

/** Fails unless both sides render the same samples. */
async function compareTexts(nodes: number): Promise<void> {
  const sides = ["proxywarden.ts", "prom-client.ts"].map((module) =>
    startContender(new URL(module, import.meta.url), nodes),
  );
  const linesOf = async (side: Contender) => {
    await side.ask("full");
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
  const [ours, theirs] = await Promise.all(sides.map(linesOf));
  for (const side of sides) side.stop();
  if (ours !== theirs) throw new Error("proxywarden and prom-client render different samples");
}

interface ServerUrls {
  readonly ours: string;
  readonly bare: string;
}

async function measureScrapes(contender: Contender, urls: ServerUrls) {
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < SCRAPES; round++) {
    bare.push(await scrape(urls.bare));
    ours.push(await scrape(urls.ours));
  }
  const changed: number[] = [];
  for (let round = 0; round < CHANGED_SCRAPES; round++) {
    await contender.ask("change");
    changed.push(await scrape(urls.ours));
  }
  return { bareScrapeMs: median(bare), scrapeMs: median(ours), changedScrapeMs: median(changed) };
}

/** Returns the milliseconds until the complete body is received. */
const scrape = (url: string) =>
  new Promise<number>((resolve, reject) => {
    const startedAt = performance.now();
    get(url, (response) => {
      response.resume().once("end", () => resolve(performance.now() - startedAt));
    }).once("error", reject);
  });
