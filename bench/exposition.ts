import { get } from "node:http";
import { type Contender, type Measured, median, startContender } from "./rounds.ts";

/** What was measured for one size of fleet: milliseconds, megabytes, and ratios of medians. */
export interface ExpositionResult {
  readonly nodes: number;
  readonly peerFullMs: number;
  readonly peerRssMb: number;
  readonly fullMs: number;
  readonly fewMs: number;
  readonly compressMs: number;
  /** The longest of a round, of refreshing or of compressing: the median of the rounds, and the worst of them. */
  readonly gapMs: number;
  readonly gapWorstMs: number;
  readonly bareScrapeMs: number;
  readonly scrapeMs: number;
  readonly rssMb: number;
  /** prom-client's full refresh over ours. */
  readonly speedup: number;
  /** Refresh of 5 % of the nodes over a full one. */
  readonly fewShare: number;
  /** Our scrape over that of the bare server. */
  readonly scrapeRatio: number;
}

/** What is to be reached, by size of fleet. */
export const targets: Readonly<
  Record<number, Partial<Record<keyof ExpositionResult, readonly [sign: "≥" | "≤", bound: number]>>>
> = {
  10000: { speedup: ["≥", 35], gapMs: ["≤", 5] },
  100000: { speedup: ["≥", 60], fewShare: ["≤", 1 / 3], gapMs: ["≤", 5], scrapeRatio: ["≤", 1.2], rssMb: ["≤", 450] },
};

/** Rounds that warm the code up, and that are counted. */
interface Length {
  readonly warm: number;
  readonly rounds: number;
}

const lengths = (nodes: number, quick: boolean): Length => {
  if (quick) return { warm: 10, rounds: 5 };
  return nodes >= 100_000 ? { warm: 4, rounds: 7 } : { warm: 15, rounds: 25 };
};

const SCRAPES = 31;

/** Measures a refresh of every value, of 5 %, and a cached gzip scrape, round by round in turn with prom-client. */
export async function benchExposition(nodes: number, quick: boolean): Promise<ExpositionResult> {
  const { warm, rounds } = lengths(nodes, quick);
  const ours = startContender(new URL("ours.ts", import.meta.url), nodes);
  const peer = startContender(new URL("peer.ts", import.meta.url), nodes);
  try {
    const peerFull: Measured[] = [];
    const full: Measured[] = [];
    const few: Measured[] = [];
    const compressed: Measured[] = [];
    for (let round = 0; round < warm + rounds; round++) {
      // prom-client needs less warming up, and its rounds are long.
      if (round === 0 || round >= warm) peerFull.push(await peer.ask<Measured>("full"));
      full.push(await ours.ask<Measured>("full"));
      compressed.push(await ours.ask<Measured>("compress"));
      few.push(await ours.ask<Measured>("few"));
      await ours.ask("compress");
    }
    if (nodes <= 1_000) await compareTexts(nodes);
    const urls = await ours.ask<{ ours: string; bare: string }>("serve");
    const rssMb = await ours.ask<number>("rss");
    const peerRssMb = await peer.ask<number>("rss");
    peer.stop();
    const scrapes = await raceScrapes(urls);
    const medianMs = (all: readonly Measured[]) => median(all.slice(-rounds).map(({ ms }) => ms));
    const peerFullMs = medianMs(peerFull);
    const fullMs = medianMs(full);
    const fewMs = medianMs(few);
    const gaps = [full, few, compressed].map((all) => all.slice(-rounds).map(({ gapMs }) => gapMs));
    return {
      nodes,
      peerFullMs,
      peerRssMb,
      fullMs,
      fewMs,
      compressMs: medianMs(compressed),
      // The kind of round that keeps the loop longest speaks for all.
      gapMs: Math.max(...gaps.map(median)),
      gapWorstMs: Math.max(...gaps.flat()),
      ...scrapes,
      rssMb,
      speedup: peerFullMs / fullMs,
      fewShare: fewMs / fullMs,
      scrapeRatio: scrapes.scrapeMs / scrapes.bareScrapeMs,
    };
  } finally {
    ours.stop();
    peer.stop();
  }
}

/** Both sides are to show the very same samples. */
async function compareTexts(nodes: number): Promise<void> {
  const sides = ["ours.ts", "peer.ts"].map((module) => startContender(new URL(module, import.meta.url), nodes));
  const linesOf = async (side: Contender) => {
    await side.ask("full");
    const text = await side.ask<string>("text");
    return text
      .split("\n")
      .filter((line) => line.startsWith("proxynet_"))
      .sort()
      .join("\n");
  };
  const [ours, peers] = await Promise.all(sides.map(linesOf));
  for (const side of sides) side.stop();
  if (ours !== peers) throw new Error("the two sides render different samples: the comparison would mean nothing");
}

async function raceScrapes(urls: { readonly ours: string; readonly bare: string }) {
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < SCRAPES; round++) {
    bare.push(await scrape(urls.bare));
    ours.push(await scrape(urls.ours));
  }
  return { bareScrapeMs: median(bare), scrapeMs: median(ours) };
}

/** Milliseconds until the last byte of the body is here. */
const scrape = (url: string) =>
  new Promise<number>((resolve, reject) => {
    const startedAt = performance.now();
    get(url, (response) => {
      response.resume().once("end", () => resolve(performance.now() - startedAt));
    }).once("error", reject);
  });
